// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"strings"
	"testing"
)

func TestCallsOfARun(t *testing.T) {
	before := Calls{"POST pods 201": 5, "LIST pods 200": 1}
	after := Calls{"POST pods 201": 105, "LIST pods 200": 70, "POST pods/binding 201": 99, "POST pods/binding 409": 1, "PATCH pods/status 200": 0}
	got := after.Since(before)
	if want := (Calls{"POST pods 201": 100, "POST pods/binding 201": 99, "POST pods/binding 409": 1}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Catches: a family in which kumiki leaves a write out, or makes one more, and the report does not say so; noise that
// it does say; writes that were refused and made again counted twice.
func TestWritesThatDifferAreSaid(t *testing.T) {
	upstream := map[string]float64{"POST pods/binding 201": 1, "POST pods/binding 429": 0.7, "POST events 201": 1.02, "PUT resourceclaims 200": 1, "PATCH pods/status 200": 4}
	kumiki := map[string]float64{"POST pods/binding 201": 1, "POST events 201": 1, "PATCH resourceclaims 200": 1, "PATCH pods/status 200": 4.15}
	got := strings.Join(callsDiffer(kumiki, upstream), ", ")
	if want := "1.00 PATCH resourceclaims instead of 0.00, 0.00 PUT resourceclaims instead of 1.00"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	rows := []WorkloadRow{{Scheduler: Kumiki, Calls: kumiki}, {Scheduler: Upstream, Calls: upstream}, {Scheduler: CreateOnly, Calls: map[string]float64{"POST pods 201": 1}}}
	var said []string
	for _, line := range remarks(rows) {
		if strings.Contains(line, "otherwise") {
			said = append(said, line)
		}
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "kumiki writes otherwise than kube-scheduler, per pod: 1.00 PATCH") {
		t.Errorf("the report says %q", said)
	}
}
