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

	"github.com/kumiki-scheduler/kumiki/bench/noop"
	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
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
func kinds(s noop.Script) map[noop.WriteKind]int {
	out := map[noop.WriteKind]int{}
	for _, w := range s {
		out[w.Do]++
		if w.Told {
			out[noop.CreateEvent]++
		}
	}
	return out
}

var everyFamily = flag.Bool("every-family", false, "play the families, too, whose kinds of writes others have as well")

// A run of kumiki is recorded, the no-op binder replays it, and its writes are recorded too. The mix has pods of all
// families: plain and refused ones, pods with claims and with volumes, gangs, and pods that preempt others. For the
// other workloads of the table, each kind of write must occur as often for each pod.
//
// Catches: any kind of write that the no-op binder leaves out, repeats or makes for another pod, and decisions that
// are invalid when they are replayed.
func TestNullWritesWhatWasWritten(t *testing.T) {
	kumiki := filepath.Join(t.TempDir(), "kumiki")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", kumiki, "github.com/kumiki-scheduler/kumiki/cmd/kumiki")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build kumiki: %v\n%s", err, out)
	}
	type family struct {
		name     string
		expected []noop.WriteKind // that both must have written
	}
	families := []family{ // which have every kind of write between them
		{"mix", []noop.WriteKind{noop.BindPod, noop.CreateEvent, noop.PatchPod, noop.DeletePod, noop.ChangeClaim, noop.SetClaimStatus, noop.PatchGroup}},
		{"volumes-late", []noop.WriteKind{noop.BindPod, noop.CreateEvent, noop.WriteVolume}},
		{"devices-as-resources", []noop.WriteKind{noop.BindPod, noop.CreateEvent, noop.CreateClaim, noop.SetClaimStatus, noop.PatchPod}},
	}
	if *everyFamily {
		families = append(families,
			family{"volumes", []noop.WriteKind{noop.BindPod, noop.CreateEvent}}, // bound already: nothing is to be written of them
			family{"claims", []noop.WriteKind{noop.BindPod, noop.CreateEvent, noop.ChangeClaim, noop.SetClaimStatus}},
			family{"claims-shared", []noop.WriteKind{noop.BindPod, noop.CreateEvent, noop.ChangeClaim, noop.SetClaimStatus}},
			family{"preemption", []noop.WriteKind{noop.BindPod, noop.CreateEvent, noop.PatchPod, noop.DeletePod}},
			family{"gangs", []noop.WriteKind{noop.BindPod, noop.CreateEvent, noop.PatchGroup}})
	}
	for _, c := range families {
		t.Run(c.name, func(t *testing.T) { nullWrites(t, kumiki, c.name, c.expected) })
	}
}

func nullWrites(t *testing.T, kumiki, name string, expected []noop.WriteKind) {
	testcluster.Reserve(t)
	dir := t.TempDir()
	plans := plansOf(t, name, "/small$")
	m := &matrix{plans: plans, tell: newTeller(io.Discard), dir: dir,
		Options: testbed.Options{KumikiBinary: kumiki, UpstreamBinary: filepath.Join(dir, "none"), Schedulers: []string{report.Null}, QPS: testbed.DefaultQPS, Burst: testbed.DefaultBurst,
			Timeout: 5 * time.Minute, Patience: testbed.DefaultPatience, Launch: func(ctx context.Context, o testcluster.Options) (*testcluster.Cluster, error) {
				return testcluster.Launch(ctx, o)
			}}}
	play := m.record(t.Context(), &plans[0])
	if play.cannot != "" {
		t.Fatal(play.cannot)
	}
	was, err := noop.ReadRecording(play.file)
	if err != nil {
		t.Fatal(err)
	}
	r := noop.NewRecorder(t.TempDir())
	trial := m.trial(t.Context(), &plans[0], report.Null, 1, play.file, r)
	if !trial.Good() || trial.Bound != trial.Pods {
		t.Fatalf("null bound %d of %d pods: %s %v", trial.Bound, trial.Pods, trial.Failure, trial.Oversold)
	}
	is, err := r.Recording()
	if err != nil {
		t.Fatal(err)
	}
	seen, had := map[noop.WriteKind]int{}, map[noop.WriteKind]int{}
	for _, scripts := range []struct{ was, is map[string]noop.Script }{
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
	for _, of := range expected {
		if seen[of] == 0 {
			t.Errorf("there is no write of the kind %s", of)
		}
	}
	if unplayed := is.Left; len(unplayed) > 0 && !maps.Equal(unplayed, was.Left) {
		t.Errorf("null writes %v that no script has, and there were %v", unplayed, was.Left)
	}
}
