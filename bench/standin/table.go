// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// table is the objects of one resource.
type table struct {
	kind schema.GroupVersionKind

	mu       sync.Mutex
	version  int
	frames   [][]byte       // an event ADDED for each object, in the order of creation
	at       map[string]int // name -> index in frames, of those that may change
	watchers map[*watcher]bool
	// streamed is when the last streamed list was completely written.
	streamed time.Time
	sent     Volume
}

// Volume is how much was sent to watching clients.
type Volume struct{ Events, Bytes int64 }

func newTable(kind schema.GroupVersionKind) *table {
	return &table{kind: kind, at: map[string]int{}, watchers: map[*watcher]bool{}}
}

// put adds or replaces an object and notifies the watchers. make returns the object with its new version.
func (t *table) put(name string, make func(version string) marshaler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version++
	obj := make(strconv.Itoa(t.version))
	added := frame(watch.Added, t.kind, obj)
	if i, known := t.at[name]; known {
		t.frames[i] = added
		t.tell(frame(watch.Modified, t.kind, obj))
		return
	}
	t.at[name] = len(t.frames)
	t.frames = append(t.frames, added)
	t.tell(added)
}

func (t *table) tell(frame []byte) {
	for w := range t.watchers { // order: each for itself
		w.push(frame)
	}
}

// watcher has the events that a watch has not written yet.
type watcher struct {
	mu      sync.Mutex
	waiting [][]byte
	news    chan struct{} // one slot
}

func (w *watcher) push(frame []byte) {
	w.mu.Lock()
	w.waiting = append(w.waiting, frame)
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// take returns the waiting events, nil if ctx ends first.
func (w *watcher) take(ctx context.Context) [][]byte {
	for {
		w.mu.Lock()
		frames := w.waiting
		w.waiting = nil
		w.mu.Unlock()
		if len(frames) > 0 {
			return frames
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.news:
		}
	}
}

// list answers with all objects in one response.
func (t *table) list(out http.ResponseWriter) {
	t.mu.Lock()
	body := list(t.kind, strconv.Itoa(t.version), t.frames)
	t.mu.Unlock()
	out.Header().Set("Content-Type", protobuf)
	_, _ = out.Write(body) // who asked may be gone
}

// chunk is how many bytes are written between two flushes.
const chunk = 32 << 10

// watch writes events until ctx ends, beginning with all existing objects if the list is requested as well.
func (t *table) watch(ctx context.Context, out http.ResponseWriter, withList bool) {
	w := &watcher{news: make(chan struct{}, 1)}
	t.mu.Lock()
	first := t.frames
	if withList {
		first = append(first[:len(first):len(first)], lastOfList(t.kind, strconv.Itoa(t.version)))
	} else {
		first = nil
	}
	t.watchers[w] = true
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.watchers, w)
		t.mu.Unlock()
	}()
	out.Header().Set("Content-Type", protobufWatch)
	out.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(out).Flush
	if flush() != nil {
		return
	}
	for frames := first; ctx.Err() == nil; frames = w.take(ctx) {
		var sent Volume
		unflushed := 0
		for _, f := range frames {
			if _, err := out.Write(f); err != nil {
				return
			}
			sent.Events++
			sent.Bytes += int64(len(f))
			if unflushed += len(f); unflushed >= chunk {
				unflushed = 0
				if flush() != nil {
					return
				}
			}
		}
		if flush() != nil {
			return
		}
		t.mu.Lock()
		t.sent.Events += sent.Events
		t.sent.Bytes += sent.Bytes
		if withList {
			t.streamed = time.Now()
			withList = false
		}
		t.mu.Unlock()
	}
}
