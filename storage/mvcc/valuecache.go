package mvcc

import (
	"sync"
)

// valueOverhead is what a cached value costs beside its bytes.
const valueOverhead = 192

// valueCache bounds the bytes of the values that items hold. The value itself
// hangs on its item, so that a hit costs no lookup and no lock; the cache is
// only the queue by which values leave again, oldest first, those used since
// the last turn once more at the end (second chance).
type valueCache struct {
	limit int64

	mu    sync.Mutex
	bytes int64
	queue []*item
	head  int
}

// add counts the value that i was given.
func (c *valueCache) add(i *item, value *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.push(i, value)
	c.evict()
}

// addAll is add for several items that hold their values.
func (c *valueCache) addAll(items []*item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range items {
		if value := i.value.Load(); value != nil {
			c.push(i, value)
		}
	}
	c.evict()
}

func (c *valueCache) push(i *item, value *cached) {
	c.queue = append(c.queue, i)
	c.bytes += sizeOf(value)
}

func (c *valueCache) evict() {
	for c.bytes > c.limit && c.head < len(c.queue) {
		i := c.queue[c.head]
		c.queue[c.head] = nil
		c.head++
		value := i.value.Load()
		if value == nil {
			continue
		}
		if value.used.Swap(false) {
			c.queue = append(c.queue, i)
			continue
		}
		i.value.Store(nil)
		c.bytes -= sizeOf(value)
	}
	if c.head > 1024 && c.head > len(c.queue)/2 {
		n := copy(c.queue, c.queue[c.head:])
		clear(c.queue[n:])
		c.queue = c.queue[:n]
		c.head = 0
	}
}

// size is what the cached values take, in bytes.
func (c *valueCache) size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

func sizeOf(value *cached) int64 {
	return int64(len(value.kv.Value)) + valueOverhead
}
