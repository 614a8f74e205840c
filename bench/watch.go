// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// seen is a store of a reflector that shows each pod of a list or a watch once and keeps only its UID.
type seen struct {
	pod    func(*corev1.Pod)
	listed func() // called after the first list, once
	known  map[string]bool
	once   sync.Once
}

var _ cache.ReflectorStore = (*seen)(nil)

// Add shows a pod that was not seen before.
func (s *seen) Add(obj any) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("watch of pods: got a %T", obj)
	}
	if uid := string(p.UID); !s.known[uid] {
		s.known[uid] = true
		s.pod(p)
	}
	return nil
}

// Update is Add.
func (s *seen) Update(obj any) error { return s.Add(obj) }

// Delete forgets nothing: no pod of a run comes back.
func (s *seen) Delete(any) error { return nil }

// Replace shows a full list.
func (s *seen) Replace(list []any, _ string) error {
	for _, obj := range list {
		if err := s.Add(obj); err != nil {
			return err
		}
	}
	s.once.Do(s.listed)
	return nil
}

// Resync does nothing.
func (s *seen) Resync() error { return nil }

// stopwatch holds when each pod was asked for and when it was seen bound.
type stopwatch struct {
	mu      sync.Mutex
	index   map[string]int // pod name -> index
	asked   []time.Time
	bound   []time.Time
	left    int
	last    time.Time // of bound
	done    chan struct{}
	strange []string // pods that were seen and are not ours
}

func newStopwatch(names []string) *stopwatch {
	w := &stopwatch{
		index: make(map[string]int, len(names)), asked: make([]time.Time, len(names)), bound: make([]time.Time, len(names)),
		left: len(names), done: make(chan struct{}),
	}
	for i, name := range names {
		w.index[name] = i
	}
	return w
}

// ask notes that the creation of a pod begins. The clock starts here and not with the answer, so that an API server that
// is kept from answering by the scheduler counts against the scheduler.
func (w *stopwatch) ask(i int) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[i] = now
}

// sawBound notes a pod that the watch shows bound, the first time.
func (w *stopwatch) sawBound(name string) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	i, ours := w.index[name]
	if !ours {
		w.strange = append(w.strange, name)
		return
	}
	if !w.bound[i].IsZero() {
		return
	}
	w.bound[i], w.last = now, now
	if w.left--; w.left == 0 {
		close(w.done)
	}
}

// unbound counts the pods that were not seen bound, and tells when one was last.
func (w *stopwatch) unbound() (int, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left, w.last
}

// first is when the first pod was asked for.
func (w *stopwatch) first() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var first time.Time
	for _, t := range w.asked {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

// latencies are the seconds from asked to bound, in the order of the pods. All pods must be bound.
func (w *stopwatch) latencies() []float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]float64, len(w.asked))
	for i := range out {
		out[i] = w.bound[i].Sub(w.asked[i]).Seconds()
	}
	return out
}
