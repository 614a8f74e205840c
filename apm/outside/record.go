// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
)

// MaxSeconds bounds the duration of a recording: a trace of a busy scheduler has some MB for each second.
const MaxSeconds = 300

// MaxExactSeconds bounds a recording that measures at the boundaries of plugins, which slows the scheduler.
const MaxExactSeconds = 60

// Source is a scheduler that answers requests, with the permissions of the user.
type Source interface {
	// Fetch returns the answer to a GET of a path with a query. The caller closes it.
	Fetch(ctx context.Context, path string) (io.ReadCloser, error)
}

// Options say what to record.
type Options struct {
	// Seconds is the duration of the trace, from 1 to MaxSeconds.
	Seconds int
	// API, if set, is the API server of the scheduler, with the permissions of the user.
	API Source
	// Exact makes the CPU time of plugins be measured at each boundary between them, for at most MaxExactSeconds.
	Exact bool
	// Progress, if set, gets lines about what happens.
	Progress func(line string)
	// Also, if set, adds other parts to the bundle after the recording.
	Also func(*bundle.Writer) error
}

// lead is by how much the CPU profile begins before the trace, and longer is by how many seconds it lasts longer; grace
// is how long an answer may be late.
const (
	lead   = 250 * time.Millisecond
	longer = 2
	grace  = time.Minute
)

// Record records a scheduler into a bundle, and sets the times of the manifest. It is an error if the scheduler allows
// neither the trace nor the profile; other denials become missing parts.
func Record(ctx context.Context, from Source, w *bundle.Writer, o Options) error {
	if o.Seconds < 1 || o.Seconds > MaxSeconds {
		return fmt.Errorf("recording for %d s: the duration must be from 1 to %d s", o.Seconds, MaxSeconds)
	}
	if o.Exact && o.Seconds > MaxExactSeconds {
		return fmt.Errorf("recording for %d s: with the boundaries of plugins it must be at most %d s", o.Seconds,
			MaxExactSeconds)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.Seconds)*time.Second+grace)
	defer cancel()
	r := &recorder{from: from, progress: o.Progress, sampler: newSampler(from, o.API)}
	defer r.close()
	w.Manifest.Began, w.Manifest.Seconds = time.Now().UTC(), o.Seconds
	r.record(ctx, o.Seconds, o.Exact)
	w.Manifest.Ended = time.Now().UTC()
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the scheduler did not complete its answers within %s of the end of the recording", grace)
	} else if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	if err := r.write(w); err != nil {
		return err
	}
	if o.Also != nil {
		if err := o.Also(w); err != nil {
			return err
		}
	}
	return w.Close()
}

// request is what to fetch for a part.
type request struct {
	kind bundle.Kind
	path string
	// begun, if set, is called with the first byte of the answer.
	begun func()
}

// fetched is a part in a temporary file.
type fetched struct {
	part bundle.Part
	file *os.File // nil if there is none
	err  error
}

// recorder collects parts.
type recorder struct {
	from     Source
	mu       sync.Mutex
	sampler  *sampler
	progress func(string) // called with mu held
	got      []fetched    // guarded by mu
}

func (r *recorder) say(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress(line)
}

// record records the trace and both profiles at the same time, and the metrics directly before and after the trace.
func (r *recorder) record(ctx context.Context, seconds int, exact bool) {
	r.say(fmt.Sprintf("recording an execution trace and profiles for %d s", seconds))
	profiles := []request{
		{kind: bundle.CPU, path: fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds+longer)},
		{kind: bundle.Allocs, path: fmt.Sprintf("/debug/pprof/allocs?seconds=%d", seconds+longer)},
		{kind: bundle.Work, path: fmt.Sprintf("/debug/kumiki/work?seconds=%d", seconds+longer)},
	}
	if exact {
		profiles[2].path += "&exact=true"
	}
	var done sync.WaitGroup
	defer done.Wait()
	for _, one := range profiles {
		done.Go(func() { r.fetch(ctx, one) })
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(lead):
	}
	r.fetch(ctx, request{kind: bundle.MetricsBefore, path: "/metrics"})
	defer r.sampled(ctx)()
	r.fetch(ctx, request{kind: bundle.Trace, path: fmt.Sprintf("/debug/pprof/trace?seconds=%d", seconds),
		begun: func() { r.say("the trace has begun") }})
	r.fetch(ctx, request{kind: bundle.MetricsAfter, path: "/metrics"})
}

// sampled takes samples until the returned function is called, which adds them as a part.
func (r *recorder) sampled(ctx context.Context) (stop func()) {
	f := fetched{part: bundle.Part{Kind: bundle.Samples, Source: "/metrics", Began: time.Now().UTC()}}
	r.sampler.doc.Before = r.sampler.apiMetrics(ctx)
	running, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.sampler.run(running)
	}()
	return func() {
		cancel()
		<-ended
		r.sampler.doc.After = r.sampler.apiMetrics(ctx)
		f.file, f.err = r.sampler.spool()
		f.part.Ended = time.Now().UTC()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, f)
	}
}

// fetch fetches one part into a temporary file.
func (r *recorder) fetch(ctx context.Context, q request) {
	f := fetched{part: bundle.Part{Kind: q.kind, Source: q.path, Began: time.Now().UTC()}}
	f.file, f.err = r.spool(ctx, q)
	f.part.Ended = time.Now().UTC()
	if f.err != nil && ctx.Err() == nil && q.kind != bundle.Work { // kube-scheduler has none
		r.say(fmt.Sprintf("no %s: %v", q.kind, f.err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, f)
}

func (r *recorder) spool(ctx context.Context, q request) (*os.File, error) {
	answer, err := r.from.Fetch(ctx, q.path)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	return spoolAnswer(answer, q.begun)
}

// spoolAnswer writes an answer into a temporary file, and calls begun, if it is set, with the first byte.
func spoolAnswer(answer io.Reader, begun func()) (*os.File, error) {
	file, err := temporary()
	if err != nil {
		return nil, err
	}
	content := bufio.NewReader(answer)
	if _, err := content.Peek(1); err == nil && begun != nil {
		begun()
	}
	limit := bundle.DefaultLimits.Part
	n, err := io.Copy(file, io.LimitReader(content, limit+1))
	switch {
	case err != nil:
		err = fmt.Errorf("the answer broke off: %w", err)
	case n > limit:
		err = fmt.Errorf("more than %d bytes", limit)
	case n == 0:
		err = errors.New("the answer is empty")
	default:
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// temporary creates a file without a name, so that it goes away with the process. Where that is not possible, close
// removes it.
func temporary() (*os.File, error) {
	file, err := os.CreateTemp("", "kumiki-profile-*")
	if err != nil {
		return nil, fmt.Errorf("creating a temporary file: %w", err)
	}
	os.Remove(file.Name())
	return file, nil
}

// write adds all parts to the bundle.
func (r *recorder) write(w *bundle.Writer) error {
	var denied error
	useful := false
	for _, f := range r.got {
		if f.err != nil {
			w.AddMissing(f.part, f.err.Error())
			if f.part.Kind == bundle.Trace {
				denied = f.err
			}
			continue
		}
		if err := w.Add(f.part, f.file); err != nil {
			return err
		}
		useful = useful || f.part.Kind == bundle.Trace || f.part.Kind == bundle.CPU
	}
	if !useful {
		return fmt.Errorf("the scheduler gives no execution trace and no CPU profile: %w", denied)
	}
	return nil
}

func (r *recorder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.got {
		if f.file != nil {
			f.file.Close()
			os.Remove(f.file.Name())
		}
	}
}
