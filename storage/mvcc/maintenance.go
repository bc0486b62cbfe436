package mvcc

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/proto"

	"github.com/taskctl-dev/taskctl/storage/backend"
	"github.com/taskctl-dev/taskctl/storage/server"
)

// tendInterval is how often sizes are measured and old trees forgotten.
const tendInterval = 5 * time.Second

// tend does what is due now and then, until the store closes.
func (s *Store) tend() {
	ticker := time.NewTicker(tendInterval)
	defer ticker.Stop()
	for {
		for _, shard := range s.shards {
			shard.measure(s.ctx)
			shard.recent.expire()
		}
		select {
		case <-ticker.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// measure asks the database for its size.
func (s *shard) measure(ctx context.Context) {
	box := s.session.Load()
	if box == nil {
		return
	}
	size, err := box.Size(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("the database's size is not known", "backend", s.name, "error", err)
		}
		return
	}
	s.size.Store(&size)
}

// Status tells revision and sizes as last measured, and which backends are
// down.
func (s *Store) Status(context.Context) (server.Status, error) {
	status := server.Status{Revision: s.sequencer.now()}
	for _, shard := range s.shards {
		if size := shard.size.Load(); size != nil {
			status.Size += size.Allocated
			status.SizeInUse += size.InUse
		}
		if reason := shard.down.Load(); reason != nil {
			status.Errors = append(status.Errors, errDown(shard.name, (*reason).Error()).Error())
		}
	}
	return status, nil
}

// Defragment gives unused space back; writes wait meanwhile.
func (s *Store) Defragment(ctx context.Context) error {
	for _, shard := range s.shards {
		err := shard.do(ctx, &job{evaluate: func(b *batch) error {
			box := shard.session.Load()
			if box == nil {
				return errDown(shard.name, "it is reconnecting")
			}
			return box.Defragment(b.ctx)
		}})
		if err != nil {
			return err
		}
		shard.measure(ctx)
	}
	return nil
}

// HashKV is etcd's hash over all versions up to a revision, as one member
// computes it: the same history gives the same hash as etcd's.
func (s *Store) HashKV(ctx context.Context, revision int64) (hash uint32, hashRevision, compactRevision int64, err error) {
	err = s.read(ctx, []span{{open: true}}, revision, func(v view, sn *snapshot) error {
		hashRevision = revision
		if hashRevision <= 0 {
			hashRevision = v.rev
		}
		if hashRevision < v.floor {
			return rpctypes.ErrCompacted
		}
		compactRevision = v.floor
		if len(sn.shards) > 1 {
			return errNoHash
		}
		var failed error
		hash, failed = sn.shards[0].hash(ctx, v.floor, hashRevision)
		return failed
	})
	return hash, hashRevision, compactRevision, err
}

func (s *shard) hash(ctx context.Context, floor, revision int64) (uint32, error) {
	session, err := s.current()
	if err != nil {
		return 0, err
	}
	upTo, err := s.lastIDAt(ctx, session, revision)
	if err != nil {
		return 0, err
	}
	// Of what is compacted only the versions that are alive at revision
	// count, whether the others are deleted yet or not.
	keep := map[int64]struct{}{}
	alive := 0
	err = session.Newest(ctx, nil, nil, upTo, func(v *backend.Version) error {
		if !v.Deleted {
			alive++
			if v.Rev <= floor {
				keep[v.ID] = struct{}{}
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, _ = sum.Write([]byte("key"))
	err = session.Scan(ctx, 0, upTo, true, func(v *backend.Version) error {
		if _, kept := keep[v.ID]; v.Rev <= floor && alive > 0 && !kept {
			return nil
		}
		if v.Rev == floor && v.Deleted {
			return nil
		}
		_, _ = sum.Write(revisionKey(v))
		kv := &mvccpb.KeyValue{Key: v.Key}
		if !v.Deleted {
			kv = &newCached(itemOf(v), v.Value).kv
		}
		encoded, err := proto.Marshal(kv)
		if err != nil {
			return err
		}
		_, _ = sum.Write(encoded)
		return nil
	})
	return sum.Sum32(), err
}

// revisionKey is the key under which etcd stores a version.
func revisionKey(v *backend.Version) []byte {
	key := binary.BigEndian.AppendUint64(nil, uint64(v.Rev))
	key = append(key, '_')
	key = binary.BigEndian.AppendUint64(key, uint64(v.Sub))
	if v.Deleted {
		key = append(key, 't')
	}
	return key
}
