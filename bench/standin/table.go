// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// table is the objects of one resource.
type table struct {
	form

	mu       sync.Mutex
	version  int
	objects  [][]byte       // the bytes of each object, in the order of creation
	at       map[string]int // name -> index in objects, of those that may change
	watchers map[*watcher]bool
	// streamed is when the last streamed list was completely written.
	streamed time.Time
	sent     Volume
}

// Volume is how much was sent to watching clients.
type Volume struct{ Events, Bytes int64 }

func newTable(kind schema.GroupVersionKind) *table {
	return &table{form: newForm(kind), at: map[string]int{}, watchers: map[*watcher]bool{}}
}

// put adds or replaces an object and notifies the watchers. make returns the object with its new version.
func (t *table) put(name string, make func(version string) marshaler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version++
	raw := must(make(strconv.Itoa(t.version)).Marshal())
	if i, known := t.at[name]; known {
		t.objects[i] = raw
		t.tell(watch.Modified, raw)
		return
	}
	t.at[name] = len(t.objects)
	t.objects = append(t.objects, raw)
	t.tell(watch.Added, raw)
}

// tell gives an event to each watcher; those with the same encoding share its bytes.
func (t *table) tell(event watch.EventType, raw []byte) {
	var encoded [2][]byte       // in protobuf and in JSON, if someone wants it
	for w := range t.watchers { // order: each for itself
		i := 0
		if w.asJSON {
			i = 1
		}
		if encoded[i] == nil {
			encoded[i] = t.appendEvent(nil, w.asJSON, event, raw)
		}
		w.push(encoded[i])
	}
}

// watcher has the events that a watch has not written yet.
type watcher struct {
	asJSON bool

	mu      sync.Mutex
	waiting [][]byte
	news    chan struct{} // one slot
}

func (w *watcher) push(event []byte) {
	w.mu.Lock()
	w.waiting = append(w.waiting, event)
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
		events := w.waiting
		w.waiting = nil
		w.mu.Unlock()
		if len(events) > 0 {
			return events
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.news:
		}
	}
}

// list answers with all objects in one response.
func (t *table) list(out http.ResponseWriter, asJSON bool) {
	t.mu.Lock()
	objects, version := slices.Clone(t.objects), strconv.Itoa(t.version)
	t.mu.Unlock()
	contentType := protobuf
	if asJSON {
		contentType = jsonType
	}
	out.Header().Set("Content-Type", contentType)
	_, _ = out.Write(t.form.list(asJSON, version, objects)) // who asked may be gone
}

// chunk is how many bytes are written between two flushes.
const chunk = 32 << 10

// watch writes events until ctx ends, beginning with all existing objects if the list is requested as well.
func (t *table) watch(ctx context.Context, out http.ResponseWriter, asJSON, withList bool) {
	w := &watcher{asJSON: asJSON, news: make(chan struct{}, 1)}
	t.mu.Lock()
	objects, version := slices.Clone(t.objects), strconv.Itoa(t.version)
	t.watchers[w] = true
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.watchers, w)
		t.mu.Unlock()
	}()
	contentType := protobufWatch
	if asJSON {
		contentType = jsonType
	}
	out.Header().Set("Content-Type", contentType)
	out.WriteHeader(http.StatusOK)
	s := stream{out: out, flush: http.NewResponseController(out).Flush}
	if s.flush() != nil {
		return
	}
	if withList {
		s.list(t.form, asJSON, version, objects)
		t.count(&s, true)
	}
	for s.err == nil && ctx.Err() == nil {
		for _, event := range w.take(ctx) {
			s.write(event, 1)
		}
		s.end()
		t.count(&s, false)
	}
}

// count adds what a stream has written since the last time.
func (t *table) count(s *stream, listed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent.Events += s.sent.Events
	t.sent.Bytes += s.sent.Bytes
	s.sent = Volume{}
	if listed && s.err == nil {
		t.streamed = time.Now()
	}
}

// stream is the answer to a watch.
type stream struct {
	out       http.ResponseWriter
	flush     func() error
	unflushed int
	sent      Volume
	err       error // the first
}

// list writes all objects, and the bookmark that ends them. They are encoded while they are written: an event for each
// object would take the memory of all of them again.
func (s *stream) list(f form, asJSON bool, version string, objects [][]byte) {
	buf := make([]byte, 0, 2*chunk)
	n := int64(0)
	for _, raw := range objects {
		buf = f.appendEvent(buf, asJSON, watch.Added, raw)
		if n++; len(buf) >= chunk {
			s.write(buf, n)
			buf, n = buf[:0], 0
		}
	}
	s.write(f.appendEvent(buf, asJSON, watch.Bookmark, lastOfList(version)), n+1)
	s.end()
}

// write writes some events, and sends them when there are enough.
func (s *stream) write(events []byte, n int64) {
	if s.err != nil {
		return
	}
	if _, s.err = s.out.Write(events); s.err != nil {
		return
	}
	s.sent.Events += n
	s.sent.Bytes += int64(len(events))
	if s.unflushed += len(events); s.unflushed >= chunk {
		s.end()
	}
}

// end sends what is written.
func (s *stream) end() {
	if s.err == nil {
		s.err, s.unflushed = s.flush(), 0
	}
}
