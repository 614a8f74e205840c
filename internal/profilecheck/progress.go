// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"fmt"
	"io"
	"time"
)

// expected is how long an injection takes if nothing is known, without and with the removal of its cause.
const expected = 11 * time.Second

// progress tells how far a check is, and how long it still takes.
type progress struct {
	w         io.Writer
	all, made int
	each      time.Duration // before the first result
	now       func() time.Time
	began     time.Time
}

func newProgress(w io.Writer, all int, gains bool, now func() time.Time) *progress {
	p := &progress{w: w, all: all, each: expected, now: now, began: now()}
	if gains {
		p.each *= 2
	}
	fmt.Fprintf(w, "%d injections to make, about %s\n", all, minutes(p.each*time.Duration(all)))
	return p
}

// done tells a result.
func (p *progress) done(r *Result) {
	p.made++
	left := p.now().Sub(p.began) / time.Duration(p.made) * time.Duration(p.all-p.made)
	fmt.Fprintf(p.w, "[%d of %d, about %s to go] %s\n", p.made, p.all, minutes(left), r.describe())
}

func minutes(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// describe returns a result on one line.
func (r *Result) describe() string {
	text := fmt.Sprintf("%s %s seed %d (%s): %s", r.Scheduler, r.Name, r.Seed, r.Strength, r.Named())
	for _, f := range r.Verdict.Findings[:min(3, len(r.Verdict.Findings))] {
		text += fmt.Sprintf("; %s %.0f %%", f.Cause, 100*f.Share)
	}
	text += fmt.Sprintf("; explained %.0f %% of %.1f pod-seconds, %.0f/s placed; by %s", 100*r.Verdict.Explained,
		r.Verdict.PodSeconds, r.Verdict.Placed, r.Verdict.Source)
	if r.Verdict.NotKnown != "" {
		text += "; " + r.Verdict.NotKnown
	}
	if r.Gain != nil {
		text += "; " + r.Gain.String()
	}
	if r.Baseline != nil {
		text += "; without a recording " + r.Baseline.String()
	}
	if r.Error != "" {
		text += "; failed: " + r.Error
	}
	return text
}
