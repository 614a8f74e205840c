// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"golang.org/x/exp/trace"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/pods"
	"github.com/kumiki-scheduler/kumiki/apm/timeline"
)

// stateSpan is a time in which a goroutine had one activity.
type stateSpan struct {
	act      activity
	reason   Component // while waiting
	at       stackID   // where it stopped executing
	from, to trace.Time
}

// Limits of tracks: of a lane, and of pods, which may all wait at the same time.
const (
	maxLaneTracks = 4096
	maxPodTracks  = 1000
)

// podGroup is the group of tracks with the pods.
const podGroup = "pods"

// ReadTimeline returns what goroutines and pods did over time: the goroutines of each lane with their states, and pods
// from their creation to the bind, with phases if the bundle has kumiki's timing. It is an error if the bundle has
// neither a trace nor pods.
func ReadTimeline(b *bundle.Reader) (*timeline.Timeline, error) {
	tl := timeline.New("scheduler", b.Manifest.Scheduler, b.Manifest.Began)
	var lacks *bundle.Missing
	t := newTracker()
	t.keepStates = true
	items := map[Lane][]timeline.Item{} // lane -> its goroutines
	t.ended = func(g *goroutine, at trace.Time) { items[g.lane] = append(items[g.lane], t.item(tl, g, at)) }
	err := part(b, bundle.Trace, t.readTrace)
	if err != nil && !errors.As(err, &lacks) {
		return nil, err
	}
	tl.Program = cmp.Or(t.program, tl.Program)
	for _, lane := range laneOrder {
		tl.Pack(string(lane), t.onWallClock(items[lane], b), maxLaneTracks)
	}
	if err := addPods(tl, b); err != nil {
		return nil, err
	}
	if tl.Len() == 0 {
		if lacks != nil {
			return nil, lacks
		}
		return nil, errors.New("the profile has no spans")
	}
	return tl, nil
}

// item returns the spans of a goroutine, in the time of the trace.
func (t *tracker) item(tl *timeline.Timeline, g *goroutine, at trace.Time) timeline.Item {
	i := timeline.Item{Span: timeline.Span{Name: tl.Name(cmp.Or(g.start, string(UnknownLane))), From: int64(g.first),
		To: int64(at)}}
	for _, s := range *g.states {
		span := timeline.Span{Name: tl.Name(stateName(s)), From: int64(s.from), To: int64(s.to)}
		if !s.act.executes() {
			if names := t.stacks.names(s.at); len(names) > 0 {
				span.At = tl.Name(names[0])
			}
		}
		i.Inner = append(i.Inner, span)
	}
	*g.states = nil
	return i
}

// stateName names an activity, and what a goroutine waited for.
func stateName(s stateSpan) string {
	switch s.act {
	case running:
		return "running"
	case runnable:
		return "runnable"
	case inSyscall:
		return "system call"
	case blockedSyscall:
		return "system call without processor"
	}
	return "waiting: " + string(cmp.Or(s.reason, Other))
}

// onWallClock converts times of the trace: by its own reading of both clocks, or, in traces of Go before 1.25, with the
// first event at the time when the recorder asked for the trace.
func (t *tracker) onWallClock(items []timeline.Item, b *bundle.Reader) []timeline.Item {
	p, _ := b.Part(bundle.Trace)
	offset := p.Began.UnixNano() - int64(t.first)
	if t.clock != nil {
		offset = t.clock.Wall.UnixNano() - int64(t.clock.Trace)
	}
	for i := range items {
		items[i].From, items[i].To = items[i].From+offset, items[i].To+offset
		for j := range items[i].Inner {
			s := &items[i].Inner[j]
			s.From, s.To = s.From+offset, s.To+offset
		}
	}
	return items
}

// addPods adds the pods of a bundle: with their phases, else from creation to bind. Pods that were not bound have no
// end and are left out.
func addPods(tl *timeline.Timeline, b *bundle.Reader) error {
	var items []timeline.Item
	journeys, err := ReadJourneys(b)
	var lacks *bundle.Missing
	if err != nil && !errors.As(err, &lacks) {
		return err
	}
	seen := map[string]bool{} // namespace/name -> has phases
	for i := range journeys {
		j := &journeys[i]
		if j.Ended == 0 {
			continue
		}
		seen[j.Key()] = true
		one := timeline.Item{Span: timeline.Span{Name: tl.Name(j.Key()), From: j.Began, To: j.Ended}}
		if len(j.Spans) > 0 {
			one.From = min(one.From, j.Spans[0].Start)
		}
		for _, s := range j.Spans {
			one.Inner = append(one.Inner, timeline.Span{Name: tl.Name(s.Phase), From: s.Start, To: s.Start + s.Took})
		}
		items = append(items, one)
	}
	times, err := ReadPods(b)
	if err != nil && !errors.As(err, &lacks) {
		return err
	}
	if times != nil {
		for i := range times.Pods {
			if p := &times.Pods[i]; p.Bound != 0 && !seen[p.Key()] {
				items = append(items, timeline.Item{Span: timeline.Span{Name: tl.Name(p.Key()), From: p.Created,
					To: p.Bound}})
			}
		}
	}
	tl.Pack(podGroup, items, maxPodTracks)
	return nil
}

// ReadPods returns when pods were created and bound. The error is a *bundle.Missing if the bundle does not have it.
func ReadPods(b *bundle.Reader) (times *pods.Times, err error) {
	err = part(b, bundle.Pods, func(r io.Reader) (err error) {
		times, err = pods.Read(r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("part %s: %w", bundle.Pods, err)
	}
	return times, nil
}

// ReadJourneys returns the phases of pods. The error is a *bundle.Missing if the bundle does not have them.
func ReadJourneys(b *bundle.Reader) (list []pods.Journey, err error) {
	err = part(b, bundle.Timing, func(r io.Reader) error {
		j, err := pods.ReadJourneys(r)
		if err == nil {
			list = j.Journeys
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("part %s: %w", bundle.Timing, err)
	}
	return list, nil
}
