// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// DefaultWritesInFlight bounds the pods for which objects are written at once.
const DefaultWritesInFlight = 50

// Writer carries out what must be written before a bind, and what takes it back. Pods go side by side; the jobs of one
// pod follow each other in the order in which they were asked for, so that what takes back an attempt can never undo
// the next one. Each Prepare is answered exactly once, unless the Writer is stopped before.
type Writer struct {
	client  kubernetes.Interface
	answer  func(engine.WritesDone)
	metrics *Metrics
	limit   int
	// patience is the first wait between tries; it doubles.
	patience time.Duration
	// lead tells whether the lease is certainly ours; set before the first job.
	lead func() bool
	// profile names the profile of a pod, for metrics; set before the first write.
	profile func(record.PodRef) string

	ctx    context.Context // of the calls
	cancel context.CancelFunc

	mu      sync.Mutex
	lanes   map[string]*lane // UID of a pod -> its jobs; a lane without jobs is not kept
	ready   []*lane          // lanes that nobody works on, oldest first
	running int
	held    bool // no job that waits is begun
	closed  bool
	workers sync.WaitGroup
}

// lane is the jobs of one pod, oldest first.
type lane struct {
	uid  string
	jobs []job
}

// job is a Prepare or a Release.
type job struct {
	pod      record.PodRef
	decision uint64
	writes   []cluster.Write
	release  bool
}

// NewWriter returns a Writer that works for at most limit pods at once. Calls end when ctx does.
func NewWriter(ctx context.Context, client kubernetes.Interface, limit int, metrics *Metrics, answer func(engine.WritesDone)) *Writer {
	if limit <= 0 {
		limit = DefaultWritesInFlight
	}
	w := &Writer{client: client, answer: answer, metrics: metrics, limit: limit, patience: 50 * time.Millisecond, lead: always, profile: noProfile,
		lanes: map[string]*lane{}}
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w
}

// Prepare queues the writes before a bind.
func (w *Writer) Prepare(p engine.Prepare) {
	w.queue(job{pod: p.Pod, decision: p.Decision, writes: p.Writes})
}

// Release queues the writes that take back those of a Prepare.
func (w *Writer) Release(r engine.Release) {
	w.queue(job{pod: r.Pod, writes: r.Writes, release: true})
}

func (w *Writer) queue(j job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	l := w.lanes[j.pod.UID]
	if l == nil {
		l = &lane{uid: j.pod.UID}
		w.lanes[j.pod.UID] = l
		w.ready = append(w.ready, l)
	}
	l.jobs = append(l.jobs, j)
	w.startLocked(min(1, len(w.ready)))
}

// Hold keeps jobs that were not begun from being begun, or lets them go. What was begun goes on.
func (w *Writer) Hold(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = on
	w.startLocked(len(w.ready))
}

// InFlight counts the pods for which a job is under way.
func (w *Writer) InFlight() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running
}

// startLocked starts workers for so many lanes that are ready.
func (w *Writer) startLocked(n int) {
	for ; n > 0 && !w.held && w.running < w.limit; n-- {
		w.running++
		w.workers.Add(1)
		w.metrics.goroutines.WithLabelValues("prebinding").Set(float64(w.running))
		go w.work()
	}
}

// work carries out jobs until no lane is ready.
func (w *Writer) work() {
	defer w.workers.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.ready) > 0 && !w.closed && !w.held {
		l := w.ready[0]
		w.ready[0] = nil
		w.ready = w.ready[1:]
		next := l.jobs[0]
		w.mu.Unlock()
		w.do(next)
		w.mu.Lock()
		if l.jobs = l.jobs[1:]; len(l.jobs) > 0 {
			w.ready = append(w.ready, l)
		} else {
			delete(w.lanes, l.uid)
		}
	}
	w.running--
	w.metrics.goroutines.WithLabelValues("prebinding").Set(float64(w.running))
}

func (w *Writer) do(j job) {
	began := time.Now()
	var failed error
	for _, wr := range j.writes {
		err := w.write(wr)
		if errors.Is(err, errStopped) {
			return
		}
		if err != nil && j.release {
			// What was not taken back is found again: by the next attempt, or by whoever controls the object.
			klog.FromContext(w.ctx).Error(err, "Not taken back", "pod", podName(j.pod))
			continue
		}
		if failed = err; failed != nil {
			break
		}
	}
	if j.release {
		return
	}
	w.metrics.passed("PreBind", w.profile(j.pod), failed, time.Since(began))
	done := engine.WritesDone{Pod: j.pod, Decision: j.decision}
	if failed != nil {
		done.Message = failed.Error()
	}
	w.answer(done)
}

// write carries out one write.
func (w *Writer) write(wr cluster.Write) error {
	switch wr := wr.(type) {
	case cluster.BindVolume:
		return w.bindVolume(wr)
	case cluster.SelectNode:
		return w.selectNode(wr)
	case cluster.AllocateClaim:
		return w.allocateClaim(wr)
	case cluster.CreateClaim:
		return w.createClaim(wr)
	case cluster.ReleaseClaim:
		return w.releaseClaim(wr)
	case cluster.DeleteClaim:
		return w.deleteClaim(wr)
	}
	panic(fmt.Sprintf("kube: nobody carries out a %T", wr))
}

// awaitLease waits until nobody else can lead: either the lease is renewed, or this process ends.
func (w *Writer) awaitLease() bool {
	for !w.lead() {
		if !sleep(w.ctx, w.patience) {
			return false
		}
	}
	return w.ctx.Err() == nil
}

// Drain drops the jobs that were not begun, and waits for those under way until patience ends. Then it ends what is left.
// The next leader finds each object written or not; all that is written is of use to it, or is taken back by it.
func (w *Writer) Drain(patience context.Context) {
	w.mu.Lock()
	w.closed = true
	w.ready = nil
	w.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		w.workers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-patience.Done():
	}
	w.cancel()
	<-ended
}
