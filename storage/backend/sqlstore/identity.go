package sqlstore

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
)

// Identity says which process owns a database. It is stored in the meta row.
type Identity struct {
	Instance string  `json:"instance"` // random, one for each opened database
	Host     string  `json:"host"`
	PID      int     `json:"pid"`
	Process  process `json:"process"`
}

// process tells one process from every other one that ever had its number, as
// far as the operating system allows: empty fields are unknown.
type process struct {
	Boot      string `json:"boot,omitempty"`      // this boot of the kernel
	Namespace string `json:"namespace,omitempty"` // in which PID counts
	Started   string `json:"started,omitempty"`   // clock ticks from boot to the process' start
}

// NewIdentity describes this process, with an instance of its own.
func NewIdentity() Identity {
	host, _ := os.Hostname() // only for people to read
	return Identity{Instance: rand.Text(), Host: host, PID: os.Getpid(), Process: describeProcess(os.Getpid())}
}

// Encode is the form that is stored.
func (i Identity) Encode() string {
	text, err := json.Marshal(i)
	if err != nil {
		panic(fmt.Sprintf("encode %#v: %v", i, err)) // strings and a number always encode
	}
	return string(text)
}

func (i Identity) String() string { return fmt.Sprintf("process %d on host %q", i.PID, i.Host) }

// decodeIdentity reads what Encode wrote.
func decodeIdentity(text string) (Identity, error) {
	var i Identity
	err := json.Unmarshal([]byte(text), &i)
	return i, err
}

// provablyGone reports whether the process has certainly ended: it ran in this
// boot of this kernel and in this namespace of process numbers, and is not
// there any more. Then nobody is left who could answer from its memory, and
// its term need not be waited out.
func (i Identity) provablyGone() bool {
	here := describeProcess(os.Getpid())
	if here.Boot == "" || here.Namespace == "" || i.Process.Boot != here.Boot || i.Process.Namespace != here.Namespace {
		return false
	}
	return processEnded(i.PID, i.Process.Started)
}
