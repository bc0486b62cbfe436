package etcddb

// ClockKey is where LastID is found.
const ClockKey = clockKey

// LastID reads the ID of the newest version from the clock's value.
func LastID(value []byte) (int64, error) {
	var c clock
	err := c.decode(value)
	return c.lastID, err
}
