// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/google/pprof/profile"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
)

// Endless is a scheduler whose answers can last until they are ended.
type Endless interface {
	Source
	// Start sends a GET whose answer lasts until Pending.End is called.
	Start(ctx context.Context, path string) (Pending, error)
}

// Pending is an answer that lasts until it is ended. What was recorded until then can be read.
type Pending interface {
	io.ReadCloser
	// End asks the server to complete the answer.
	End() error
}

// forever is the duration in seconds of answers that are ended.
const forever = 24 * 60 * 60

// Session is a recording whose end is not known when it begins, such as that of a workload.
type Session struct {
	recorder
	endless    Endless
	most       time.Duration
	began      time.Time
	cpu, trace *pending // nil if the scheduler denies it
	unsample   func()   // ends the samples and adds them
	end        sync.Once
	ended      chan struct{} // closed by the end of the session
	over       error
	stop       *time.Timer
}

// pending is a part whose answer is being written to a file.
type pending struct {
	part   bundle.Part
	answer Pending
	done   chan struct{} // closed when file and err are set
	file   *os.File
	err    error
}

// Begin begins a recording: a CPU profile, then allocations and metrics, then the trace. It returns when the trace has
// begun. After a time, at most, the recording ends by itself. What the scheduler denies becomes a missing part. With
// api, the API server of the scheduler, the state of both is sampled meanwhile.
func Begin(ctx context.Context, from Endless, api Source, most time.Duration) (*Session, error) {
	s := &Session{recorder: recorder{from: from, progress: func(string) {}, sampler: newSampler(from, api)},
		endless: from, most: most, began: time.Now().UTC(), ended: make(chan struct{})}
	s.cpu = s.start(ctx, bundle.CPU, fmt.Sprintf("/debug/pprof/profile?seconds=%d", forever), nil)
	select {
	case <-ctx.Done():
	case <-time.After(lead):
	}
	s.fetch(ctx, request{kind: bundle.Allocs, path: allocsPath})
	s.fetch(ctx, request{kind: bundle.MetricsBefore, path: "/metrics"})
	begun := make(chan struct{})
	s.trace = s.start(ctx, bundle.Trace, fmt.Sprintf("/debug/pprof/trace?seconds=%d", forever),
		sync.OnceFunc(func() { close(begun) }))
	select {
	case <-ctx.Done():
	case <-s.trace.done: // it was denied
	case <-begun:
	}
	if err := ctx.Err(); err != nil {
		s.Close()
		return nil, fmt.Errorf("recording: %w", err)
	}
	s.unsample = func() {}
	if api != nil {
		s.unsample = s.sampled(ctx)
	}
	s.stop = time.AfterFunc(most, func() { s.finish(ctx) })
	return s, nil
}

// allocsPath has all allocations since the start of the process. Two of them give those between.
const allocsPath = "/debug/pprof/allocs"

// start begins an answer, and reads it into a temporary file.
func (s *Session) start(ctx context.Context, kind bundle.Kind, path string, begun func()) *pending {
	p := &pending{part: bundle.Part{Kind: kind, Source: path, Began: time.Now().UTC()}, done: make(chan struct{})}
	if p.answer, p.err = s.endless.Start(ctx, path); p.err != nil {
		close(p.done)
		return p
	}
	go func() {
		defer close(p.done)
		p.file, p.err = spoolAnswer(p.answer, begun)
		p.part.Ended = time.Now().UTC()
	}()
	return p
}

// complete ends an answer and waits for it.
func (p *pending) complete() {
	if p.answer != nil {
		if err := p.answer.End(); err != nil {
			_ = p.answer.Close() // so that the read ends
		}
	}
	<-p.done
}

// fetched returns the part.
func (p *pending) fetched() fetched { return fetched{part: p.part, file: p.file, err: p.err} }

// finish ends the recording once: the trace, then metrics and allocations, then the CPU profile.
func (s *Session) finish(ctx context.Context) {
	s.end.Do(func() {
		defer close(s.ended)
		s.unsample()
		s.trace.complete()
		s.fetch(ctx, request{kind: bundle.MetricsAfter, path: "/metrics"})
		after := fetched{part: bundle.Part{Kind: bundle.Allocs, Source: allocsPath}}
		after.file, after.err = s.spool(ctx, request{kind: bundle.Allocs, path: allocsPath})
		s.cpu.complete()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.between(&after)
		s.got = append(s.got, s.cpu.fetched(), s.trace.fetched())
		if after.file != nil {
			after.file.Close()
		}
	})
	<-s.ended
}

// between replaces the allocations until the begin by those between begin and end. It is called with mu held.
func (s *Session) between(after *fetched) {
	for i := range s.got {
		before := &s.got[i]
		if before.part.Kind != bundle.Allocs {
			continue
		}
		before.part.Ended = time.Now().UTC()
		if before.err = errors.Join(before.err, after.err); before.err != nil {
			return
		}
		file := before.file
		before.file, before.err = difference(file, after.file)
		file.Close()
	}
}

// difference returns a profile with what the second one has more than the first.
func difference(before, after io.Reader) (*os.File, error) {
	var both [2]*profile.Profile
	for i, r := range []io.Reader{before, after} {
		var err error
		if both[i], err = profile.Parse(r); err != nil {
			return nil, fmt.Errorf("the allocation profile: %w", err)
		}
	}
	both[0].Scale(-1)
	p, err := profile.Merge(both[:])
	if err != nil {
		return nil, fmt.Errorf("the allocation profile: %w", err)
	}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		return nil, fmt.Errorf("the allocation profile: %w", err)
	}
	return spoolAnswer(&out, nil)
}

// End ends the recording, and adds its parts to a bundle, of which it sets the times. The caller adds other parts and
// closes the bundle.
func (s *Session) End(ctx context.Context, w *bundle.Writer) error {
	s.stop.Stop()
	s.finish(ctx)
	w.Manifest.Began, w.Manifest.Ended = s.began, time.Now().UTC()
	w.Manifest.Seconds = int(s.most.Seconds())
	for _, f := range s.got {
		if f.err != nil {
			w.AddMissing(f.part, f.err.Error())
		} else if err := w.Add(f.part, f.file); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the recording without a result, and removes temporary files. It may be called after End.
func (s *Session) Close() {
	if s.stop != nil {
		s.stop.Stop()
	}
	for _, p := range []*pending{s.cpu, s.trace} {
		if p == nil {
			continue
		}
		if p.answer != nil {
			_ = p.answer.Close()
		}
		<-p.done
		if p.file != nil {
			p.file.Close()
		}
	}
	s.close()
}
