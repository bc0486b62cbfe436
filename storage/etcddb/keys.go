package etcddb

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Prefix begins every key of ours in that etcd. A NUL byte sorts before
// whatever people write, so a read of everything that Kubernetes stores does
// not meet it.
const Prefix = "\x00taskctl/"

const (
	metaKey       = Prefix + "meta"      // epoch and adoption
	clockKey      = Prefix + "clock"     // what the newest batch left
	compactedKey  = Prefix + "compacted" // up to which etcd revision this program has compacted
	leasePrefix   = Prefix + "lease/"    // + ID in hexadecimal
	sidecarPrefix = Prefix + "of/"       // + the key that it is beside of
)

// prefixEnd is the first key after all of ours.
var prefixEnd = endOf(Prefix)

// endOf is the first key that does not begin with the prefix.
func endOf(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string(prefix[last]+1)
}

func isOurs(key []byte) bool { return strings.HasPrefix(string(key), Prefix) }

func sidecarOf(key string) string { return sidecarPrefix + key }

func leaseKey(id int64) string { return fmt.Sprintf("%s%016x", leasePrefix, uint64(id)) }

func leaseOf(key string) (int64, error) {
	var id uint64
	if _, err := fmt.Sscanf(strings.TrimPrefix(key, leasePrefix), "%016x", &id); err != nil {
		return 0, errDamaged(key)
	}
	return int64(id), nil
}

func errDamaged(key string) error {
	return fmt.Errorf("the key %q of the etcd holds what this program did not write: it is damaged; restore a backup", key)
}

// format begins each value of ours, so that a later program can tell.
const format = 1

// encode writes numbers; small ones take a byte.
func encode(numbers ...int64) string {
	out := make([]byte, 1, 1+3*len(numbers))
	out[0] = format
	for _, n := range numbers {
		out = binary.AppendVarint(out, n)
	}
	return string(out)
}

// decode reads as many numbers as there are targets.
func decode(key string, value []byte, targets ...*int64) error {
	if len(value) == 0 || value[0] != format {
		return errDamaged(key)
	}
	value = value[1:]
	for _, target := range targets {
		n, size := binary.Varint(value)
		if size <= 0 {
			return errDamaged(key)
		}
		*target, value = n, value[size:]
	}
	if len(value) > 0 {
		return errDamaged(key)
	}
	return nil
}

// meta is the value of metaKey. Its etcd revision is what batches compare: who
// raises the epoch makes every batch of an older session fail.
type meta struct {
	epoch   int64
	adopted int64 // the etcd revision at which the etcd was adopted
	keys    int64 // how many keys it had then: IDs up to it are theirs
}

func (m *meta) encode() string { return encode(m.epoch, m.adopted, m.keys) }

func (m *meta) decode(value []byte) error {
	return decode(metaKey, value, &m.epoch, &m.adopted, &m.keys)
}

// clock is the value of clockKey: it is put by every batch, so that its history
// tells which etcd revision holds which of ours, and a batch that compares its
// etcd revision can only follow the one that it was made for.
type clock struct {
	lastRev, lastID, floor, swept int64
	// seen is the etcd revision up to which all changes by others have
	// revisions of ours.
	seen int64
}

func (c *clock) encode() string { return encode(c.lastRev, c.lastID, c.floor, c.swept, c.seen) }

func (c *clock) decode(value []byte) error {
	return decode(clockKey, value, &c.lastRev, &c.lastID, &c.floor, &c.swept, &c.seen)
}
