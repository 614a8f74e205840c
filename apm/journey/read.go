// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// GangTiming has the milestones of its gang; nil without one.
	GangTiming *record.GangTiming `json:"gangTiming,omitempty"`
	// Requests are the writes about the pod, oldest first.
	Requests []record.RequestTiming `json:"requests,omitempty"`
	// Lost is set if older requests or journeys were overwritten before they were read.
	Lost record.Lost `json:"lost"`
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
			r.GangTiming = &t.Gangs[i]
		}
	}
	for _, q := range t.Requests {
		about := q.Resource == "pods" || strings.HasPrefix(q.Resource, "pods/")
		inside := q.End() >= r.Began && (r.Ended == 0 || q.Start <= r.Ended)
		if about && inside && q.Namespace == namespace && q.Name == name {
			r.Requests = append(r.Requests, q)
		}
	}
	if r.Lost = t.Lost; r.Arriving == nil && r.ArrivingWhy == "" {
		r.ArrivingWhy = withoutLog
	}
	return r, found
}
