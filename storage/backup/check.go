package backup

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// ErrNoBackup says that a file is not a backup of a format that is known.
var ErrNoBackup = errors.New("this is not a backup of taskctl, or one of a newer format")

// ErrDamaged says that a backup is not as it was written.
var ErrDamaged = errors.New("the backup is damaged or was cut off")

// Content is called with what a backup holds, in its order: the header, the
// rows in order of mod revisions, the leases. A nil function is not called.
type Content struct {
	Header func(Header) error
	Row    func(*mvccpb.KeyValue) error
	Lease  func(Lease) error
}

// Check reads a whole backup and says what it holds. Its error wraps ErrNoBackup
// or ErrDamaged where that is why.
func Check(from io.Reader) (Summary, error) { return Read(from, Content{}) }

// Read is Check with calls for what is read. What they have been given counts
// only once Read returns without an error.
func Read(from io.Reader, content Content) (Summary, error) {
	var summary Summary
	first := make([]byte, len(magic))
	if _, err := io.ReadFull(from, first); err != nil || string(first) != magic {
		return summary, ErrNoBackup
	}
	expanded, err := gzip.NewReader(from)
	if err != nil {
		return summary, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r := &reading{frames: frameReader{from: bufio.NewReader(expanded), sum: sha256.New()}, content: content}
	err = r.all()
	var own *callError
	switch {
	case errors.As(err, &own):
		return r.summary, own.err
	case err != nil:
		return r.summary, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return r.summary, nil
}

// callError is an error of the caller's function.
type callError struct{ err error }

func (e *callError) Error() string { return e.err.Error() }

// reading is the state of a Read.
type reading struct {
	frames  frameReader
	content Content
	summary Summary
	newest  int64 // mod revision of the last row
	begun   bool  // the header was read
	ended   bool
}

func (r *reading) all() error {
	for !r.ended {
		kind, payload, err := r.frames.read()
		if err != nil {
			return err
		}
		if r.begun == (kind == frameHeader) {
			return errors.New("the header is not where it belongs")
		}
		switch kind {
		case frameHeader:
			err = r.header(payload)
		case frameRow:
			err = r.row(payload)
		case frameLease:
			err = r.lease(payload)
		case frameEnd:
			err = r.end(payload)
		default:
			err = fmt.Errorf("a record of type %q", kind)
		}
		if err != nil {
			return err
		}
	}
	// The stream's own sum is compared at its end.
	if _, err := r.frames.from.ReadByte(); err != io.EOF {
		if err == nil {
			return errors.New("something follows the end")
		}
		return err
	}
	return nil
}

func (r *reading) header(payload []byte) error {
	r.begun = true
	if err := json.Unmarshal(payload, &r.summary.Header); err != nil {
		return err
	}
	if r.content.Header == nil {
		return nil
	}
	return called(r.content.Header(r.summary.Header))
}

func (r *reading) row(payload []byte) error {
	row := &mvccpb.KeyValue{}
	if err := proto.Unmarshal(payload, row); err != nil {
		return err
	}
	switch {
	case row.ModRevision < r.newest:
		return fmt.Errorf("the key %q is not in order", row.Key)
	case row.ModRevision > r.summary.Revision, row.CreateRevision > row.ModRevision, row.CreateRevision < 1, row.Version < 1:
		return fmt.Errorf("the revisions of the key %q contradict each other", row.Key)
	}
	r.newest = row.ModRevision
	r.summary.Rows++
	r.summary.Bytes += int64(len(row.Key) + len(row.Value))
	if r.content.Row == nil {
		return nil
	}
	return called(r.content.Row(row))
}

func (r *reading) lease(payload []byte) error {
	var lease Lease
	if err := json.Unmarshal(payload, &lease); err != nil {
		return err
	}
	r.summary.Leases++
	if r.content.Lease == nil {
		return nil
	}
	return called(r.content.Lease(lease))
}

func (r *reading) end(payload []byte) error {
	r.ended = true
	var last end
	if err := json.Unmarshal(payload, &last); err != nil {
		return err
	}
	switch {
	case last.SHA256 != hex.EncodeToString(r.frames.sum.Sum(nil)):
		return errors.New("its checksum is not the one that was written")
	case last.Rows != r.summary.Rows, last.Leases != r.summary.Leases:
		return errors.New("its counts are not those that were written")
	}
	return nil
}

func called(err error) error {
	if err == nil {
		return nil
	}
	return &callError{err}
}
