// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/pods"
	"github.com/kumiki-scheduler/kumiki/bench/ops"
	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestTrialsKeepTheirProfiles: a trial of a scheduler has its trace and the times of the measured pods, and one of the
// no-op binder the times alone, with the reason.
func TestTrialsKeepTheirProfiles(t *testing.T) {
	testcluster.Reserve(t)
	const n = 40
	plan, err := basicPlan(10, n)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "profiles")
	m := &matrix{plans: []workload.Plan{plan}, tell: newTeller(io.Discard), Options: testbed.Options{Rounds: 1,
		Schedulers: []string{report.Kumiki, report.Null}, QPS: testbed.DefaultQPS, Burst: testbed.DefaultBurst,
		Timeout: 3 * time.Minute, Bundles: dir}}
	c, err := m.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Verdict(); err != nil {
		t.Fatal(err, c.Failures(plan.Name))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	want := []string{"basic-10Nodes_40Pods_kumiki_1.kumiki", "basic-10Nodes_40Pods_null_1.kumiki"}
	if !slices.Equal(files, want) {
		t.Fatalf("files %q, want %q", files, want)
	}
	for _, name := range files {
		checkBundle(t, filepath.Join(dir, name), n)
	}
}

func checkBundle(t *testing.T, name string, n int) {
	t.Helper()
	b, err := bundle.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	times, err := apm.ReadPods(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range times.Pods {
		if took := time.Duration(p.Bound - p.Created); took <= 0 || took > time.Minute {
			t.Errorf("pod %s is bound after %v", p.Key(), took)
		}
	}
	if len(times.Pods) != n || times.Created != pods.FromCall {
		t.Errorf("%s: %d pods from %q", name, len(times.Pods), times.Created)
	}
	p, err := apm.Analyze(b)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(name, report.Null) {
		if why := p.Unknown["lanes"]; p.Traced != nil || !strings.Contains(why, "null serves no profiles") {
			t.Errorf("null has a trace of %v, not observed because %q", p.Traced, why)
		}
		return
	}
	if part, has := b.Part(bundle.Timing); !has || part.Missing != "" && !strings.Contains(part.Missing, "404") {
		t.Errorf("the phases of pods are %+v", part)
	}
	if p.Program != "kumiki" || p.CPU.Process == nil || len(p.Attempts) == 0 || p.Attempts[0].Count < int64(n) {
		t.Errorf("program %q, CPU %+v, attempts %v, not observed %v", p.Program, p.CPU, p.Attempts, p.Unknown)
	}
}

// TestOnlyPodsOfTheWorkloadAreTimed: a pod that another client created has no time of its creation.
func TestOnlyPodsOfTheWorkloadAreTimed(t *testing.T) {
	at := time.Unix(100, 0)
	times := timesOf([]ops.Pod{{Namespace: "a", Name: "ours", Asked: at, Bound: at.Add(5)},
		{Namespace: "a", Name: "pending", Asked: at}, {Namespace: "a", Name: "another", Bound: at}})
	want := []pods.Pod{{Namespace: "a", Name: "ours", Created: at.UnixNano(), Bound: at.UnixNano() + 5},
		{Namespace: "a", Name: "pending", Created: at.UnixNano()}}
	if !slices.Equal(times.Pods, want) {
		t.Errorf("%+v, want %+v", times.Pods, want)
	}
}

// TestNamesOfBundles: a path of a program and a second measurement of a trial have names of their own, in the directory.
func TestNamesOfBundles(t *testing.T) {
	for want, c := range map[string]struct {
		trial  report.Trial
		number int
	}{
		"basic-small_kube-scheduler@100_2.kumiki": {report.Trial{Workload: "basic/small", Scheduler: "kube-scheduler@100",
			Round: 2}, 0},
		"a-b_bin-other_1_2.kumiki": {report.Trial{Workload: "a/b", Scheduler: "/bin/other", Round: 1}, 1},
	} {
		if got := bundleName(&c.trial, c.number); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
