// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/record"
)

// maxTiming bounds a timing document in bytes.
const maxTiming = 256 << 20

// Open reads the timing part of a bundle. The error is a *bundle.Missing if there is none.
func Open(b *bundle.Reader) (*record.Timing, error) {
	part, err := b.Open(bundle.Timing)
	if err != nil {
		return nil, err
	}
	defer part.Close()
	t, err := Parse(part)
	if err != nil {
		return nil, fmt.Errorf("the part %s: %w", bundle.Timing, err)
	}
	return t, nil
}

// Parse reads a timing document and checks it.
func Parse(from io.Reader) (*record.Timing, error) {
	limited := &io.LimitedReader{R: from, N: maxTiming + 1}
	in := json.NewDecoder(limited)
	t := &record.Timing{}
	err := in.Decode(t)
	if err == nil {
		if _, more := in.Token(); more != io.EOF {
			err = errors.New("there is more after its end")
		}
	}
	if limited.N == 0 {
		err = fmt.Errorf("it has more than %d bytes", maxTiming)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the times of pods: %w", err)
	}
	return t, Check(t)
}

// Check returns an error unless a document is consistent.
func Check(t *record.Timing) error {
	for i := range t.Journeys {
		if err := t.Journeys[i].Check(); err != nil {
			return fmt.Errorf("times of pods contradict each other: %w", err)
		}
	}
	for i := range t.Gangs {
		if err := t.Gangs[i].Check(); err != nil {
			return fmt.Errorf("times of gangs contradict each other: %w", err)
		}
	}
	for i := range t.Evictions {
		if err := t.Evictions[i].Check(); err != nil {
			return fmt.Errorf("times of evictions contradict each other: %w", err)
		}
	}
	for i := range t.Requests {
		q := &t.Requests[i]
		if min(q.Throttle, q.Connect, q.Send, q.Server, q.Answer) < 0 || q.End() < q.Start {
			return fmt.Errorf("times of requests contradict each other: a part of request %s is negative or too long",
				q.AuditID)
		}
	}
	return nil
}

// Report is what is known of the way of one pod.
type Report struct {
	record.Journey
	// Others counts other journeys of pods of the same name: they were deleted, or left and came back.
	Others int `json:"others,omitempty"`
	// GangTiming has the milestones of its gang, and GangPhases what is between them; nil without one.
	GangTiming *record.GangTiming     `json:"gangTiming,omitempty"`
	GangPhases []record.MilestoneSpan `json:"gangPhases,omitempty"`
	// Evictions are those for the pod, for its gang, and of the pod itself, in the order in which they were requested.
	Evictions []Eviction `json:"evictions,omitempty"`
	// Requests are the writes about the pod, oldest first.
	Requests []record.RequestTiming `json:"requests,omitempty"`
	// ClockSet is by how much the clock of the scheduler's machine was set since the scheduler started, 0 for less than
	// a second: times are by the clock at the start, so they differ from other times of that machine by it.
	ClockSet record.Time `json:"clockSet,omitempty"`
	// Lost is set if older requests or journeys were overwritten before they were read.
	Lost record.Lost `json:"lost"`
}

// Eviction is an eviction with its phases.
type Eviction struct {
	record.EvictionTiming
	// OfPod is true if the pod is one of the victims.
	OfPod  bool                   `json:"ofPod,omitempty"`
	Phases []record.MilestoneSpan `json:"phases"`
}

// withoutLog is why the time before the first observation is not known.
const withoutLog = "it needs an audit log of the API server (--audit-log)"

// Of returns the newest journey of a pod, and false if there is none.
func Of(t *record.Timing, namespace, name string) (r Report, found bool) {
	for i := range t.Journeys {
		if j := &t.Journeys[i]; j.Pod.Namespace == namespace && j.Pod.Name == name {
			if found {
				r.Others++
			}
			if !found || j.Began >= r.Began {
				r.Journey = *j
			}
			found = true
		}
	}
	for i := range t.Gangs {
		if t.Gangs[i].Gang == r.Gang && r.Gang != "" {
			r.GangTiming, r.GangPhases = &t.Gangs[i], t.Gangs[i].Phases()
		}
	}
	r.Evictions = evictionsOf(t, &r.Journey)
	for _, q := range t.Requests {
		about := q.Resource == "pods" || strings.HasPrefix(q.Resource, "pods/")
		inside := q.End() >= r.Began && (r.Ended == 0 || q.Start <= r.Ended)
		if about && inside && q.Namespace == namespace && q.Name == name {
			r.Requests = append(r.Requests, q)
		}
	}
	if set := t.Wall - t.Now; t.Wall != 0 && t.Now != 0 && (set >= record.Second || set <= -record.Second) {
		r.ClockSet = set
	}
	if r.Lost = t.Lost; r.Arriving == nil && r.ArrivingWhy == "" {
		r.ArrivingWhy = withoutLog
	}
	return r, found
}

// evictionsOf returns the evictions that a pod, or its gang, got capacity by, and those of the pod itself.
func evictionsOf(t *record.Timing, j *record.Journey) (list []Eviction) {
	for _, e := range t.Evictions {
		ofPod := slices.ContainsFunc(e.Pods, func(v record.VictimTiming) bool { return v.Pod.UID == j.Pod.UID })
		if e.For.UID == j.Pod.UID || e.Gang == j.Gang && e.Gang != "" || ofPod {
			list = append(list, Eviction{EvictionTiming: e, OfPod: ofPod, Phases: e.Phases()})
		}
	}
	slices.SortStableFunc(list, func(a, b Eviction) int { return cmp.Compare(a.Requested, b.Requested) })
	return list
}
