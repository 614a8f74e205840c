// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
)

// watchAges knows when each watch last brought anything. Any goroutine may use it.
type watchAges struct {
	mu    sync.Mutex
	began time.Time
	last  map[string]*atomic.Int64 // watch -> nanoseconds after began; absent for one that there is none of
}

// listen returns a store that notes when anything comes. A watch that begins anew counts from then on.
func (h *watchAges) listen(watch string, to cache.ReflectorStore) cache.ReflectorStore {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		h.began, h.last = time.Now(), map[string]*atomic.Int64{}
	}
	at := h.last[watch]
	if at == nil {
		at = &atomic.Int64{}
		h.last[watch] = at
	}
	l := listening{ReflectorStore: to, at: at, began: h.began}
	l.renew()
	if t, transforms := to.(cache.TransformingStore); transforms {
		return transforming{l, t}
	}
	return l
}

// absent is the age of a watch that cannot be had. What is not there does not grow old.
const absent = -1

// miss notes that a watch cannot be had, until it brings something.
func (h *watchAges) miss(watch string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := h.last[watch]; at != nil {
		at.Store(absent)
	}
}

// ages visits each watch with the time since it last brought anything; known is false for one that cannot be had.
func (h *watchAges) ages(visit func(watch string, age time.Duration, known bool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for watch, at := range h.last { // order: each for itself
		last := at.Load()
		visit(watch, time.Since(h.began)-time.Duration(last), last != absent)
	}
}

type listening struct {
	cache.ReflectorStore
	at    *atomic.Int64
	began time.Time
}

func (l listening) renew() { l.at.Store(int64(time.Since(l.began))) }

// Add takes a new object.
func (l listening) Add(obj any) error {
	l.renew()
	return l.ReflectorStore.Add(obj)
}

// Update takes a version of an object.
func (l listening) Update(obj any) error {
	l.renew()
	return l.ReflectorStore.Update(obj)
}

// Delete takes the end of an object.
func (l listening) Delete(obj any) error {
	l.renew()
	return l.ReflectorStore.Delete(obj)
}

// Replace takes a full list.
func (l listening) Replace(list []any, version string) error {
	l.renew()
	return l.ReflectorStore.Replace(list, version)
}

// Bookmark takes the news that there is none.
func (l listening) Bookmark(string) error {
	l.renew()
	return nil
}

type transforming struct {
	listening
	inner cache.TransformingStore
}

// Transformer converts objects while a list streams in.
func (t transforming) Transformer() cache.TransformFunc { return t.inner.Transformer() }
