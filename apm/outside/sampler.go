// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/samples"
)

const (
	// sampleEvery and probeEvery are the intervals between samples of the scheduler and probes of the API server.
	sampleEvery = 250 * time.Millisecond
	probeEvery  = 100 * time.Millisecond
)

// The paths at the API server. The probe does no work and does not wait in queues of API Priority and Fairness.
const (
	probePath = "/livez/ping"
	podsPath  = "/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3D"
)

// sampler collects samples until it is stopped.
type sampler struct {
	scheduler, api Source // api may be nil

	mu     sync.Mutex
	doc    samples.Document
	probes []int64 // since the last sample
	pods   podCount
	noPods string // why pods are not known; empty if they are
}

// podCount counts pods without a node.
type podCount struct {
	nominated map[string]bool // UID of a pod without a node -> a node is nominated for it
	count     samples.Pods
	at        time.Time // of the area
}

// advance adds the time since the last change to the area.
func (p *podCount) advance(now time.Time) {
	if !p.at.IsZero() {
		p.count.Area += int64(len(p.nominated)) * int64(now.Sub(p.at))
	}
	p.at = now
}

// podEvent is what is read of an event of the watch.
type podEvent struct {
	Type   string `json:"type"`
	Object struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
		Status struct {
			NominatedNodeName string `json:"nominatedNodeName"`
		} `json:"status"`
	} `json:"object"`
}

// maxPods bounds the pods that are counted.
const maxPods = 1_000_000

// see counts one event.
func (p *podCount) see(e *podEvent, now time.Time) error {
	uid := e.Object.Metadata.UID
	if uid == "" || e.Type == "BOOKMARK" {
		return nil
	}
	p.advance(now)
	_, known := p.nominated[uid]
	switch {
	case e.Type == "DELETED":
		if known {
			p.count.Left++
		}
		delete(p.nominated, uid)
		return nil
	case e.Type == "ERROR":
		return fmt.Errorf("the watch of pods broke off")
	case len(p.nominated) >= maxPods:
		return fmt.Errorf("more than %d pods", maxPods)
	case !known:
		p.count.Created++
	}
	p.nominated[uid] = e.Object.Status.NominatedNodeName != ""
	return nil
}

func newSampler(scheduler, api Source) *sampler {
	s := &sampler{scheduler: scheduler, api: api, pods: podCount{nominated: map[string]bool{}}}
	if api == nil {
		s.noPods = "the API server was not asked"
		s.doc.NoAPI = s.noPods
	}
	return s
}

// run samples until ctx ends. The answers of requests under way are dropped.
func (s *sampler) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	if s.api != nil {
		all.Go(func() { s.watchPods(ctx) })
		all.Go(func() { repeat(ctx, probeEvery, s.probe) })
	}
	repeat(ctx, sampleEvery, s.sample)
}

// repeat calls f at once and then at intervals. A call that takes longer delays the next one.
func repeat(ctx context.Context, every time.Duration, f func(context.Context)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		f(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// apiMetrics reads what the API server counts; nil with a reason in the document.
func (s *sampler) apiMetrics(ctx context.Context) samples.Values {
	if s.api == nil {
		return nil
	}
	v, err := metricsOf(ctx, s.api)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.doc.NoAPI = err.Error()
		return nil
	}
	return v
}

func metricsOf(ctx context.Context, from Source) (samples.Values, error) {
	answer, err := from.Fetch(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	return samples.Parse(answer)
}

func (s *sampler) sample(ctx context.Context) {
	began := time.Now()
	v, err := metricsOf(ctx, s.scheduler)
	if err != nil {
		return // the parts before and after say why
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := samples.Sample{At: began.Add(now.Sub(began) / 2).UnixNano(), Values: v, Probes: s.probes}
	s.probes = nil
	if s.noPods == "" {
		s.pods.advance(now)
		count := s.pods.count
		count.Unbound = len(s.pods.nominated)
		for _, nominated := range s.pods.nominated { // order: a count
			if nominated {
				count.Nominated++
			}
		}
		one.Pods = &count
	}
	s.doc.Samples = append(s.doc.Samples, one)
}

func (s *sampler) probe(ctx context.Context) {
	began := time.Now()
	answer, err := s.api.Fetch(ctx, probePath)
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(answer, 1<<10))
		answer.Close()
	}
	if err != nil {
		return // the API server's metrics say why, or the pods
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probes = append(s.probes, int64(time.Since(began)))
}

func (s *sampler) watchPods(ctx context.Context) {
	answer, err := s.api.Fetch(ctx, podsPath)
	if err == nil {
		defer answer.Close()
		defer context.AfterFunc(ctx, func() { answer.Close() })()
		events := json.NewDecoder(answer)
		for err == nil {
			var e podEvent
			if err = events.Decode(&e); err == nil {
				s.mu.Lock()
				err = s.pods.see(&e, time.Now())
				s.mu.Unlock()
			}
		}
	}
	if ctx.Err() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.noPods = fmt.Sprintf("the watch of pods without a node ended: %v", err)
	}
}

// document encodes the samples.
func (s *sampler) document() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doc.NoPods = s.noPods
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(&s.doc); err != nil {
		return nil, fmt.Errorf("encoding samples: %w", err)
	}
	return out.Bytes(), nil
}

// spool writes the document into a temporary file.
func (s *sampler) spool() (*os.File, error) {
	text, err := s.document()
	if err != nil {
		return nil, err
	}
	file, err := temporary()
	if err != nil {
		return nil, err
	}
	if _, err = file.Write(text); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("writing samples: %w", err)
	}
	return file, nil
}
