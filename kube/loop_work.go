// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Work returns what the scheduling core does during a time: amounts of work, CPU time and waste. The CPU time of all
// Steps is measured meanwhile; with exact, that of plugins at each boundary between them. During 0 it returns what was
// done since the start.
func (l *Loop) Work(ctx context.Context, during time.Duration, exact bool) (r record.WorkReport, err error) {
	if during <= 0 {
		err = l.Ask(ctx, func() { r = l.tally.Report() })
		return r, err
	}
	var before record.WorkReport
	measure := func(on bool) {
		l.tally.MeasureAll(on)
		if exact {
			l.tally.MeasureBoundaries(on)
		}
	}
	begin := func() {
		measure(true)
		before = l.tally.Report()
	}
	if err := l.Ask(ctx, begin); err != nil {
		return r, err
	}
	select {
	case <-ctx.Done():
	case <-time.After(during):
	}
	// Also if the reader has gone: otherwise all Steps would be measured from now on.
	err = l.Ask(context.WithoutCancel(ctx), func() {
		measure(false)
		r = l.tally.Report()
	})
	if err == nil {
		err = ctx.Err()
	}
	return r.Since(&before), err
}
