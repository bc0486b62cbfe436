package backup

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"time"
)

// magic is the first line of a file; its number is the format's.
const magic = "taskctl backup 1\n"

// The types of frames.
const (
	frameHeader = 'H'
	frameRow    = 'K'
	frameLease  = 'L'
	frameEnd    = 'E'
)

// maxFrame bounds a frame that is read: more than any value that a store takes.
const maxFrame = 1 << 30

// Header says what a backup holds.
type Header struct {
	// Revision is the one that the rows are the key space of.
	Revision int64 `json:"revision"`
	// Taken is when that was.
	Taken time.Time `json:"taken"`
	// Program is the version of the program that wrote the file.
	Program string `json:"program,omitempty"`
}

// Lease is a lease as a file has it.
type Lease struct {
	ID int64 `json:"id"`
	// TTL is what was granted, and Remaining what was left, in seconds.
	TTL       int64   `json:"ttl"`
	Remaining float64 `json:"remaining"`
}

// end is the last frame.
type end struct {
	Rows   int64  `json:"rows"`
	Leases int64  `json:"leases"`
	SHA256 string `json:"sha256"`
}

// frameWriter writes frames and sums what it writes.
type frameWriter struct {
	to  io.Writer
	sum hash.Hash
}

func (w *frameWriter) write(kind byte, payload []byte) error {
	head := binary.AppendUvarint(nil, uint64(len(payload)))
	head = append(head, kind)
	for _, part := range [...][]byte{head, payload} {
		if _, err := w.to.Write(part); err != nil {
			return err
		}
		_, _ = w.sum.Write(part)
	}
	return nil
}

func (w *frameWriter) writeJSON(kind byte, value any) error {
	payload, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.write(kind, payload)
}

// frameReader reads frames and sums what it reads.
type frameReader struct {
	from *bufio.Reader
	sum  hash.Hash
}

// read returns the next frame. Of the last one, the sum is left out.
func (r *frameReader) read() (kind byte, payload []byte, err error) {
	length, err := binary.ReadUvarint(r.from)
	if err != nil {
		return 0, nil, noEnd(err)
	}
	if length > maxFrame {
		return 0, nil, fmt.Errorf("a record of %d bytes", length)
	}
	if kind, err = r.from.ReadByte(); err != nil {
		return 0, nil, noEnd(err)
	}
	payload, err = readFull(r.from, int(length))
	if err != nil {
		return 0, nil, err
	}
	if kind != frameEnd {
		_, _ = r.sum.Write(append(binary.AppendUvarint(nil, length), kind))
		_, _ = r.sum.Write(payload)
	}
	return kind, payload, nil
}

// readFull reads that many bytes, and asks for memory as they come: a damaged
// length must not cost a gigabyte.
func readFull(from io.Reader, length int) ([]byte, error) {
	const step = 1 << 20
	payload := make([]byte, 0, min(length, step))
	for len(payload) < length {
		begin := len(payload)
		payload = append(payload, make([]byte, min(step, length-begin))...)
		if _, err := io.ReadFull(from, payload[begin:]); err != nil {
			return nil, noEnd(err)
		}
	}
	return payload, nil
}

// noEnd says that the end of the stream came too soon.
func noEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
