package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/taskctl-dev/taskctl/storage/backend"
)

// The binary forms of parameters and columns: integers big-endian, arrays as
// in PostgreSQL's array_recv (dimensions, has-nulls, element type, length,
// lower bound, then each element behind its length, −1 for NULL).

func int8Param(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func appendArrayHeader(to []byte, elementType uint32, length int) []byte {
	if length == 0 {
		to = binary.BigEndian.AppendUint32(to, 0)
		to = binary.BigEndian.AppendUint32(to, 0)
		return binary.BigEndian.AppendUint32(to, elementType)
	}
	to = binary.BigEndian.AppendUint32(to, 1)
	to = binary.BigEndian.AppendUint32(to, 0)
	to = binary.BigEndian.AppendUint32(to, elementType)
	to = binary.BigEndian.AppendUint32(to, uint32(length))
	return binary.BigEndian.AppendUint32(to, 1)
}

func appendInt8(to []byte, n int64) []byte {
	to = binary.BigEndian.AppendUint32(to, 8)
	return binary.BigEndian.AppendUint64(to, uint64(n))
}

func appendBool(to []byte, value bool) []byte {
	to = binary.BigEndian.AppendUint32(to, 1)
	if value {
		return append(to, 1)
	}
	return append(to, 0)
}

func appendBytea(to, value []byte) []byte {
	to = binary.BigEndian.AppendUint32(to, uint32(len(value)))
	return append(to, value...)
}

func appendNull(to []byte) []byte { return binary.BigEndian.AppendUint32(to, 0xffffffff) }

func int8ArrayParam(numbers []int64) []byte {
	param := appendArrayHeader(make([]byte, 0, 20+12*len(numbers)), oidInt8, len(numbers))
	for _, n := range numbers {
		param = appendInt8(param, n)
	}
	return param
}

// columns of the INSERT's arrays.
const (
	columnDeleted = 7
	columnKey     = 8
	columnValue   = 9
	columnCount   = 10
)

// versionArrays encodes rows for statements.insert, reusing the buffers.
func versionArrays(buffers *[columnCount][]byte, versions []backend.Version) [][]byte {
	for i := range buffers {
		element := uint32(oidInt8)
		switch i {
		case columnDeleted:
			element = oidBool
		case columnKey, columnValue:
			element = oidBytea
		}
		buffers[i] = appendArrayHeader(buffers[i][:0], element, len(versions))
	}
	for i := range versions {
		v := &versions[i]
		for column, n := range [...]int64{v.ID, v.Rev, v.Sub, v.Prev, v.Create, v.Version, v.Lease} {
			buffers[column] = appendInt8(buffers[column], n)
		}
		buffers[columnDeleted] = appendBool(buffers[columnDeleted], v.Deleted)
		buffers[columnKey] = appendBytea(buffers[columnKey], v.Key)
		if v.Deleted {
			buffers[columnValue] = appendNull(buffers[columnValue])
		} else {
			buffers[columnValue] = appendBytea(buffers[columnValue], v.Value)
		}
	}
	return buffers[:]
}

// decodeInts reads int8 columns into the targets.
func decodeInts(columns [][]byte, into ...*int64) error {
	for i, target := range into {
		if len(columns[i]) != 8 {
			return fmt.Errorf("column %d has %d bytes where an integer has 8: the database is damaged", i, len(columns[i]))
		}
		*target = int64(binary.BigEndian.Uint64(columns[i]))
	}
	return nil
}

func decodeBool(column []byte) (bool, error) {
	if len(column) != 1 {
		return false, fmt.Errorf("a boolean has %d bytes: the database is damaged", len(column))
	}
	return column[0] != 0, nil
}
