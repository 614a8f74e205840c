// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"testing"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
)

// Catches: a plugin that is spelled wrong and measured as nothing, and kumiki itself missing to compare with.
func TestAblationsAreMeasuredBesideKumiki(t *testing.T) {
	o := testbed.Options{Schedulers: []string{report.Null}}
	if err := ablate(&o, []string{"NodePorts", "NodePorts"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{report.Null, report.Kumiki, "kumiki~NodePorts"}; !slices.Equal(o.Schedulers, want) {
		t.Errorf("measured are %v, want %v", o.Schedulers, want)
	}
	if err := ablate(&o, []string{"NodePort"}); err == nil {
		t.Error("no error for a plugin that there is not")
	}
}
