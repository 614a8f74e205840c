// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"io"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Pause is how a pause stands on a scheduler's lease.
type Pause struct {
	// Lease is namespace/name.
	Lease string `json:"lease"`
	// State is scheduling (no pause), asked (nobody has answered), pausing (nothing new is sent, something has no
	// outcome yet) or paused.
	State string `json:"state"`
	// Holder is who leads, by its identity in the lease.
	Holder string `json:"holder,omitempty"`
	// InFlight counts the pods for which something was sent before the pause and is not answered.
	InFlight int        `json:"inFlight,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	// By is who asked, as far as it is known.
	By string `json:"by,omitempty"`
}

// Pausing writes how a pause stands, as one row.
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

// paused is the line by which other answers tell of a pause, empty when there is none.
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
