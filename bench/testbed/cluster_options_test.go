// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"slices"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// Catches: claims that no controller makes out of templates, controllers where no workload needs them, alpha APIs
// left off, and a gate that cannot be set given to an API server, which then does not start.
func TestTheGroundOfAWorkload(t *testing.T) {
	plain := ClusterOptions(&workload.Plan{})
	if plain.RuntimeConfig != "" || plain.FeatureGates != "" || slices.ContainsFunc(plain.Args, func(a string) bool { return strings.Contains(a, "controllers") }) {
		t.Errorf("a plain workload gets %+v", plain)
	}
	claims := ClusterOptions(&workload.Plan{Gates: map[string]bool{claimsGate: true, "SchedulerQueueingHints": false}})
	if claims.RuntimeConfig != "api/all=true" || claims.FeatureGates != claimsGate+"=true" ||
		!slices.ContainsFunc(claims.Args, func(a string) bool {
			return strings.HasPrefix(a, "--controllers-arg=--controllers=resourceclaim-controller,")
		}) {
		t.Errorf("a workload with claims gets %+v", claims)
	}
	late := ClusterOptions(&workload.Plan{Ops: []workload.Op{&workload.CreateAny{Template: workload.Template{Text: "apiVersion: v1\nkind: StorageClass\n"}}}})
	if want := "--controllers-arg=--controllers=persistentvolume-binder-controller,serviceaccount-controller,root-ca-certificate-publisher-controller"; !slices.Contains(late.Args, want) {
		t.Errorf("a workload whose volumes are bound late gets %+v", late)
	}
	given, refused := Gates(&workload.Plan{Gates: map[string]bool{
		"SchedulerQueueingHints": true, "NodeDeclaredFeatures": true, "Other": false}})
	if _, stays := given["SchedulerQueueingHints"]; stays || len(given) != 2 || len(refused) != 0 {
		t.Errorf("gates that can be set: %v, refused %v", given, refused)
	}
	given, refused = Gates(&workload.Plan{Gates: map[string]bool{"SchedulerQueueingHints": false, "NodeDeclaredFeatures": false}})
	if len(given) != 0 || len(refused) != 2 {
		t.Errorf("gates that cannot be set: %v, given %v", refused, given)
	}
}

// Catches: a scheduler with the limits that this program was started with, which others may not have.
func TestLimitsOfGoAreSaid(t *testing.T) {
	t.Setenv("GOGC", "400")
	t.Setenv("GOMEMLIMIT", "1GiB")
	t.Setenv("GOMAXPROCS", "1")
	var got []string
	for _, s := range environment(report.GoLimits{Procs: 2, GCPercent: 100}) {
		if name, _, _ := strings.Cut(s, "="); strings.HasPrefix(name, "GOM") || name == "GOGC" {
			got = append(got, s)
		}
	}
	slices.Sort(got)
	got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "GOMODCACHE=") })
	if want := []string{"GOGC=100", "GOMAXPROCS=2"}; !slices.Equal(got, want) {
		t.Errorf("a scheduler is started with %v, want %v", got, want)
	}
}
