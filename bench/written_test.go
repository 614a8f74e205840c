// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"flag"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/bench/workloads"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

func plansOf(t *testing.T, name, match string) []workload.Plan {
	t.Helper()
	c, err := workloads.Case(name)
	if err != nil {
		t.Fatal(err)
	}
	plans, err := (&workload.File{Cases: []*workload.Case{c}}).Plans(regexp.MustCompile(match), "")
	if err != nil || len(plans) != 1 {
		t.Fatalf("%d workloads, %v", len(plans), err)
	}
	return plans
}

// kinds counts what a script does.
func kinds(s Script) map[Deed]int {
	out := map[Deed]int{}
	for _, w := range s {
		out[w.Do]++
		if w.Told {
			out[doEvent]++
		}
	}
	return out
}

var everyFamily = flag.Bool("every-family", false, "play the families, too, whose kinds of writes others have as well")

// A run of kumiki is recorded, null plays it, and what null writes is recorded too. The mix has pods of all families: plain and
// refused ones, pods with claims and with volumes, gangs, and pods that others make room for; the others show that what a row of
// the table compares is the same for both: every kind of write as often for each pod.
//
// Catches: any kind of write that null leaves out, makes twice or makes for another pod, and decisions that are not right when
// they are made again.
func TestNullWritesWhatWasWritten(t *testing.T) {
	kumiki := filepath.Join(t.TempDir(), "kumiki")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", kumiki, "github.com/kumiki-scheduler/kumiki/cmd/kumiki")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build kumiki: %v\n%s", err, out)
	}
	type family struct {
		name  string
		deeds []Deed // that both must have made
	}
	families := []family{ // which have every kind of write between them
		{"mix", []Deed{doBind, doEvent, doPatchPod, doDeletePod, doChangeClaim, doClaimStatus, doGroup}},
		{"volumes-late", []Deed{doBind, doEvent, doVolume}},
		{"devices-as-resources", []Deed{doBind, doEvent, doCreateClaim, doClaimStatus, doPatchPod}},
	}
	if *everyFamily {
		families = append(families,
			family{"volumes", []Deed{doBind, doEvent}}, // bound already: nothing is to be written of them
			family{"claims", []Deed{doBind, doEvent, doChangeClaim, doClaimStatus}},
			family{"claims-shared", []Deed{doBind, doEvent, doChangeClaim, doClaimStatus}},
			family{"preemption", []Deed{doBind, doEvent, doPatchPod, doDeletePod}},
			family{"gangs", []Deed{doBind, doEvent, doGroup}})
	}
	for _, c := range families {
		t.Run(c.name, func(t *testing.T) { nullWrites(t, kumiki, c.name, c.deeds) })
	}
}

func nullWrites(t *testing.T, kumiki, name string, deeds []Deed) {
	testcluster.Reserve(t)
	dir := t.TempDir()
	plans := plansOf(t, name, "/small$")
	m := &matrix{plans: plans, tell: newTeller(io.Discard), dir: dir,
		Options: Options{KumikiBinary: kumiki, UpstreamBinary: filepath.Join(dir, "none"), Schedulers: []string{Null}, QPS: defaultQPS, Burst: defaultBurst,
			Timeout: 5 * time.Minute, Patience: defaultPatience, launch: func(ctx context.Context, o testcluster.Options) (*testcluster.Cluster, error) {
				return testcluster.Launch(ctx, o)
			}}}
	play := m.record(t.Context(), &plans[0])
	if play.cannot != "" {
		t.Fatal(play.cannot)
	}
	was, err := readRecording(play.file)
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder(t.TempDir())
	trial := m.trial(t.Context(), &plans[0], Null, 1, play.file, r)
	if !trial.good() || trial.Bound != trial.Pods {
		t.Fatalf("null bound %d of %d pods: %s %v", trial.Bound, trial.Pods, trial.Failure, trial.Oversold)
	}
	is, err := r.recording()
	if err != nil {
		t.Fatal(err)
	}
	seen, had := map[Deed]int{}, map[Deed]int{}
	for _, scripts := range []struct{ was, is map[string]Script }{
		{was.Scripts, is.Scripts}, {was.Groups, is.Groups}, {was.Volumes, is.Volumes}} {
		for _, key := range slices.Sorted(maps.Keys(scripts.was)) {
			want, got := kinds(scripts.was[key]), kinds(scripts.is[key])
			if len(got) == 0 && strings.Contains(key, "too-big") {
				continue // a churn makes as many as there is time for
			}
			if !maps.Equal(got, want) && name != "claims-shared" { // there the first of a claim's pods has its finalizer, whichever that is
				t.Errorf("%s: null writes %v, want %v", key, got, want)
			}
			for of, n := range got { // order: sums
				seen[of] += n
			}
			for of, n := range want { // order: sums
				had[of] += n
			}
		}
	}
	if !maps.Equal(seen, had) {
		t.Errorf("null writes %v in all, want %v", seen, had)
	}
	for _, of := range deeds {
		if seen[of] == 0 {
			t.Errorf("nobody made a write of the kind %s", of)
		}
	}
	if unplayed := is.Left; len(unplayed) > 0 && !maps.Equal(unplayed, was.Left) {
		t.Errorf("null writes %v that no script has, and there were %v", unplayed, was.Left)
	}
}
