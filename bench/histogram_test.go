// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// Catches: what happened before measuring counted, a quantile that is no interpolation, series of other labels mixed in.
func TestHistogramsAreThoseOfTheTimeBetween(t *testing.T) {
	wanted := []workload.Metric{{Name: "m_seconds", Labels: []workload.MetricLabel{{Label: "result", Values: []string{"ok"}}}}}
	parse := func(text string) scraped {
		s, err := parseMetrics(text, wanted)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := parse(`m_seconds_bucket{result="ok",le="1"} 5
m_seconds_bucket{result="ok",le="2"} 5
m_seconds_bucket{result="ok",le="+Inf"} 5
m_seconds_sum{result="ok"} 2
m_seconds_count{result="ok"} 5
scheduler_schedule_attempts_total{profile="p",result="ok"} 5
`)
	after := parse(`# HELP m_seconds of no interest
m_seconds_bucket{result="ok",le="1"} 15
m_seconds_bucket{result="ok",le="2"} 25
m_seconds_bucket{result="ok",le="+Inf"} 25
m_seconds_sum{result="ok"} 22
m_seconds_count{result="ok"} 25
m_seconds_count{result="bad"} 99
other_seconds_count 3
scheduler_schedule_attempts_total{profile="p",result="ok"} 27
`)
	got := scraped{}
	got.add(before, after)
	items := got.items(wanted)
	if len(items) != 1 || got.attempts() != 22 {
		t.Fatalf("%d attempts, items %v", got.attempts(), items)
	}
	if d := items[0].Data; d["Average"] != 1000 || d["Perc50"] != 1000 || d["Perc90"] != 1800 {
		t.Errorf("20 samples of 20 seconds, half of them above 1: %v", d)
	}
}
