// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/record"
)

// dice is a plugin of kube-scheduler's framework that filters and scores at random, so that another process cannot
// give the same answers.
type dice struct{}

func (dice) Name() string { return "Dice" }

func (dice) Filter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	if rand.IntN(3) == 0 {
		return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("the dice reject %s on %s", pod.Name, node.Node().Name))
	}
	return nil
}

func (dice) Score(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	return rand.Int64N(101), nil
}

func (dice) ScoreExtensions() fwk.ScoreExtensions { return nil }

// recordDice records a scheduler with the plugin, in segments, as cmd/kumiki does.
func recordDice(t *testing.T, path string) {
	t.Helper()
	plugins, err := app.Plugins{}.WithFramework(framework.Registration{Name: "Dice", Type: dice{},
		Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return dice{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := plugins.ParseConfig([]byte("apiVersion: kubescheduler.config.k8s.io/v1\n" +
		"kind: KubeSchedulerConfiguration\nprofiles: [{plugins: {multiPoint: {enabled: [{name: Dice}]}}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := plugins.EngineConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	cfg.UnschedulableTimeout = record.Time(5 * time.Minute)
	e, intake := engine.New(cfg), convert.NewIntake()
	intake.KeepFull()
	r, err := tape.Start(path, c, 5*time.Minute, tape.Options{MaxBytes: 20_000, Segments: 100, State: e.State})
	if err == nil {
		err = r.Describe(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	step := func(ev engine.Event) { r.Observe(ev, e.Step(ev)) }
	step(engine.Tick{Now: record.Second})
	for i := range 5 {
		step(engine.NodeSet{Node: intake.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)},
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("8"),
				"memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}}})})
	}
	step(engine.Synced{})
	for i := range 40 {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%d", i),
			UID: types.UID(fmt.Sprintf("u%d", i))}, Spec: v1.PodSpec{SchedulerName: v1.DefaultSchedulerName}}
		step(engine.PodSet{Pod: intake.Pod(p)})
		step(engine.Cycle{})
		step(engine.Tick{Now: record.Time(i+2) * record.Second})
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReplayWithoutThePlugin: the command line without any plugin replays the recording of a program with one, byte for
// byte, all segments and each by itself. A recording from which answers are missing is rejected, with the plugin and
// the extension point.
func TestReplayWithoutThePlugin(t *testing.T) {
	dir := t.TempDir()
	recordDice(t, filepath.Join(dir, "tape"))
	if code, out, complaints := command(t, "kumiki", "replay", dir); code != 0 || !strings.Contains(out, "byte for byte") {
		t.Fatalf("exit %d, %s%s", code, out, complaints)
	}
	names, err := tape.Files(dir)
	if err != nil || len(names) < 2 {
		t.Fatalf("%d segments, %v", len(names), err)
	}
	for _, name := range names {
		if code, out, complaints := command(t, "kumiki", "replay", name); code != 0 {
			t.Errorf("%s: exit %d, %s%s", name, code, out, complaints)
		}
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(text), `{"effect":"Heard"`)
	_, rest, _ = strings.Cut(rest, "\n")
	if err := os.WriteFile(names[0], []byte(first+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, complaints := command(t, "kumiki", "replay", names[0])
	if code == 0 || !strings.Contains(complaints, `plugin "Dice" of profile "default-scheduler" at preFilter`) {
		t.Errorf("without the first answers: exit %d, %s", code, complaints)
	}
}
