// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/record"
)

// workerPool is workers who carry out jobs for pods side by side. The jobs of one pod follow each other in the order in
// which they were asked for. A job is begun once: until then it can be withdrawn, from then on only its outcome
// decides.
type workerPool[J any] struct {
	client  kubernetes.Interface
	metrics *metrics.Metrics
	// patience is the first wait between tries; it doubles.
	patience time.Duration
	// lead reports, at once, whether the lease is certainly ours; set before the first job. No job is begun without it.
	lead func() bool
	// left is how long the lease is certainly ours if it is not renewed any more; set with lead.
	left func() time.Duration
	// profile names the profile of a pod, for metrics; set before the first job.
	profile func(record.PodRef) string

	ctx    context.Context // of the calls
	cancel context.CancelFunc

	what  string  // the metric's name for the work
	limit int     // on the pods that are worked for at once
	do    func(J) // carries out one job

	busy atomic.Int32 // jobs begun that have not ended; any goroutine may read it without the mutex

	mu      sync.Mutex
	lanes   map[string]*lane[J] // UID of a pod -> its jobs; a lane without a worker and without jobs is not kept long
	ready   []*lane[J]          // lanes without a worker, oldest first; those without a job are skipped
	running int                 // workers
	held    bool                // no job is begun for the moment
	closed  bool                // no job is begun any more
	workers sync.WaitGroup
}

// lane is the jobs of one pod that were not begun, oldest first.
type lane[J any] struct {
	uid  string
	jobs []J
}

// newWorkerPool returns a crew at rest. Its calls end when ctx does.
func newWorkerPool[J any](ctx context.Context, client kubernetes.Interface, metrics *metrics.Metrics, what string,
	limit int) *workerPool[J] {
	c := &workerPool[J]{client: client, metrics: metrics, what: what, limit: limit, patience: 50 * time.Millisecond,
		lead: func() bool { return true }, left: forever, profile: noProfile, lanes: map[string]*lane[J]{}}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// noProfile is for who makes a part alone.
func noProfile(record.PodRef) string { return "" }

// add asks for a job for a pod.
func (c *workerPool[J]) add(uid string, job J) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	l := c.lanes[uid]
	if l == nil {
		l = &lane[J]{uid: uid}
		c.lanes[uid] = l
		c.ready = append(c.ready, l)
	}
	l.jobs = append(l.jobs, job)
	c.start(1)
}

// start starts workers for that many lanes more, as far as some are ready and the limit allows it.
func (c *workerPool[J]) start(lanes int) {
	if c.held || c.closed {
		return
	}
	for range min(lanes, len(c.ready), c.limit-c.running) {
		c.running++
		c.workers.Add(1)
		go c.work()
	}
	c.metrics.Goroutines.WithLabelValues(c.what).Set(float64(c.running))
}

// Hold keeps jobs that were not begun from being begun, or lets them go. Those that were begun go on.
func (c *workerPool[J]) Hold(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = on
	c.start(len(c.ready))
}

// InFlight is how many jobs were begun and have not ended.
func (c *workerPool[J]) InFlight() int { return int(c.busy.Load()) }

// takeBack takes back the first job of a pod that is the one meant and that was not begun. It reports whether there was
// one.
func (c *workerPool[J]) takeBack(uid string, meant func(J) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lanes[uid]
	if l == nil {
		return false
	}
	i := slices.IndexFunc(l.jobs, meant)
	if i < 0 {
		return false
	}
	l.jobs = slices.Delete(l.jobs, i, i+1)
	return true
}

// waits reports whether a job of this key was not begun yet.
func (c *workerPool[J]) waits(uid string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lanes[uid]
	return l != nil && len(l.jobs) > 0
}

// holdBack holds, and takes back all jobs that were not begun, oldest pod first.
func (c *workerPool[J]) holdBack() (jobs []J) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = true
	for _, l := range c.ready {
		jobs = append(jobs, l.jobs...)
		l.jobs = nil
	}
	return jobs
}

func (c *workerPool[J]) isHeld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// work carries out jobs until none is ready.
func (c *workerPool[J]) work() {
	defer c.workers.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.mayBegin() {
		l := c.ready[0]
		c.ready[0] = nil
		c.ready = c.ready[1:]
		if len(l.jobs) > 0 {
			next := l.jobs[0]
			l.jobs = slices.Delete(l.jobs, 0, 1)
			c.busy.Add(1)
			c.mu.Unlock()
			c.do(next)
			c.mu.Lock()
			c.busy.Add(-1)
		}
		if len(l.jobs) > 0 {
			c.ready = append(c.ready, l)
		} else {
			delete(c.lanes, l.uid)
		}
	}
	c.running--
	c.metrics.Goroutines.WithLabelValues(c.what).Set(float64(c.running))
}

// mayBegin waits until a job may be begun: there is one, and no other process can lead. It reports whether there is
// such a job; it is false, too, if the pool begins no more jobs. It must be called with the lock held, and returns with
// the lock held.
func (c *workerPool[J]) mayBegin() bool {
	for {
		if len(c.ready) == 0 || c.held || c.closed {
			return false
		}
		if c.lead() {
			return true
		}
		c.mu.Unlock()
		alive := call.Sleep(c.ctx, c.patience)
		c.mu.Lock()
		if !alive {
			return false
		}
	}
}

// awaitLease waits until no other process can lead, or this process ends. It reports whether the lease was renewed.
func (c *workerPool[J]) awaitLease() bool {
	for !c.lead() {
		if !call.Sleep(c.ctx, c.patience) {
			return false
		}
	}
	return c.ctx.Err() == nil
}

func (c *workerPool[J]) calls() context.Context   { return c.ctx }
func (c *workerPool[J]) firstWait() time.Duration { return c.patience }

// forever is what is left of the lease where there is no election.
func forever() time.Duration { return math.MaxInt64 }

// writing returns the context of one write. It ends when limit has passed, and when the lease does without a renewal: a
// write that waits in this process, for a rate limit or for a connection, is then not sent any more, and one that the
// API server still works on is given up.
func (c *workerPool[J]) writing(limit time.Duration) (context.Context, context.CancelFunc) {
	return c.tracedWriting(limit, nil)
}

// tracedWriting is writing with a trace of the job; nil for none.
func (c *workerPool[J]) tracedWriting(limit time.Duration, trace *call.Trace) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	ctx = call.WithTrace(ctx, trace)
	var end *time.Timer
	end = time.AfterFunc(limit, func() {
		if left := c.left(); left > 0 {
			end.Reset(left)
		} else {
			cancel()
		}
	})
	end.Reset(min(limit, c.left()))
	return ctx, func() { end.Stop(); cancel() }
}

// drain drops the jobs that were not begun, waits for those under way until patience ends, and then ends what is left.
// It tells how many it dropped.
func (c *workerPool[J]) drain(patience context.Context) (dropped int) {
	c.mu.Lock()
	c.closed = true
	for _, l := range c.lanes { // order: a sum
		dropped += len(l.jobs)
	}
	c.ready = nil
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		c.workers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-patience.Done():
	}
	c.cancel()
	<-ended
	return dropped
}
