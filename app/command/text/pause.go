// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Pause is the state of a pause on a scheduler's lease.
type Pause struct {
	// Lease is namespace/name.
	Lease string `json:"lease"`
	// State is scheduling (no pause), asked (not confirmed), pausing (no new requests, some without a response) or
	// paused.
	State string `json:"state"`
	// Holder is the leader, by its identity in the lease.
	Holder string `json:"holder,omitempty"`
	// InFlight counts the pods with requests from before the pause that have no response.
	InFlight int        `json:"inFlight,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	// By is the user who requested it, if known.
	By string `json:"by,omitempty"`
}

// Pausing writes the state of a pause, as one row.
func Pausing(w io.Writer, p Pause, now time.Time) error {
	out := &page{w: w}
	since := ""
	if p.Since != nil {
		since = now.Sub(*p.Since).Round(time.Second).String()
	}
	out.table([][]string{
		{"LEASE", "STATE", "FOR", "IN FLIGHT", "HOLDER", "BY", "REASON"},
		{p.Lease, p.State, dash(since), fmt.Sprint(p.InFlight), dash(p.Holder), dash(p.By), dash(p.Reason)},
	})
	return out.err
}

// paused returns the line about a pause in other reports, empty if there is none.
func paused(p *record.Pause, at record.Time) string {
	if p == nil {
		return ""
	}
	line := "Scheduling is paused"
	if p.Since > 0 {
		line += " for " + Ago(p.Since, at)
	}
	if p.By != "" {
		line += " by " + p.By
	}
	if p.Reason != "" {
		line += ": " + p.Reason
	}
	return line + ". Nothing is placed until `kumiki resume`."
}
