// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/record"
)

var hostedHistories = flag.Int("hosted.histories", 40, "random histories with plugins of kube-scheduler's framework")

// replayStock replays files with a program that has no plugin. It returns how many events there are, and the first
// difference.
func replayStock(names ...string) (events int, err error) {
	err = PlayFiles(names, app.Plugins{}, func(string) {}, func(_ *engine.Engine, s Step) error {
		events++
		if !s.Differs() {
			return nil
		}
		return fmt.Errorf("event %d, %.300s: other effects\n then: %s\n now:  %s", s.Number, s.EventLine,
			bytes.Join(s.Then, []byte("\n       ")), bytes.Join(s.Now, []byte("\n       ")))
	})
	return events, err
}

// TestHostedHistoriesReplay: a program without the plugins replays random histories of a scheduler with plugins at
// random points, whose answers are random, with restarts; each segment of the recording also by itself, from its State.
func TestHostedHistoriesReplay(t *testing.T) {
	answers, placed, segments := 0, 0, 0
	for seed := range uint64(*hostedHistories) {
		dir := t.TempDir()
		w := newHostedWorld(t, filepath.Join(dir, "tape"), seed)
		w.run(60)
		names, err := Files(dir)
		if err != nil {
			t.Fatal(err)
		}
		events, err := replayStock(names...)
		if err == nil && events != w.steps {
			err = fmt.Errorf("%d events of %d", events, w.steps)
		}
		if err != nil {
			t.Fatalf("history %d: %v", seed, err)
		}
		for range 2 {
			name := names[w.rng.IntN(len(names))]
			if _, err := replayStock(name); err != nil {
				t.Fatalf("history %d, segment alone: %v", seed, err)
			}
		}
		answers, placed, segments = answers+w.answers, placed+w.placed, segments+len(names)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	if placed < 5**hostedHistories || segments < 2**hostedHistories {
		t.Errorf("%d pods placed in %d segments", placed, segments)
	}
	t.Logf("%d histories, %d segments, %d pods placed, %d bytes of answers", *hostedHistories, segments, placed, answers)
}

// hostedRecording returns the recording of a history, as one file.
func hostedRecording(t *testing.T, seed uint64) string {
	t.Helper()
	dir := t.TempDir()
	w := newHostedWorld(t, filepath.Join(dir, "tape"), seed)
	w.run(40)
	names, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHostedAnswersMustFit: a recording whose answers are gone is rejected with the name of the plugin and the extension point.
func TestHostedAnswersMustFit(t *testing.T) {
	text := hostedRecording(t, 6)
	if _, different, err := play(text); err != nil || different > 0 {
		t.Fatalf("as it was recorded: %d events differ, %v", different, err)
	}
	lines := strings.SplitAfter(text, "\n")
	dropped, errs := 0, 0
	for i, line := range lines {
		if !strings.Contains(line, `"effect":"Heard"`) {
			continue
		}
		dropped++
		without := strings.Join(lines[:i], "") + strings.Join(lines[i+1:], "")
		if _, _, err := play(without); err != nil {
			errs++
			if text := err.Error(); !strings.Contains(text, `plugin "`) || !strings.Contains(text, " at ") {
				t.Errorf("without line %d: %v", i+1, err)
			}
		} else {
			t.Errorf("line %d is not needed: %s", i+1, line)
		}
		if dropped == 8 {
			break
		}
	}
	if dropped < 8 || errs != dropped {
		t.Errorf("%d lines of answers left out, %d errors", dropped, errs)
	}
	const drawn, at = `"name":"Drawn0"`, `"points":["preEnqueue"`
	for old, hostile := range map[string]string{ // order: each by itself
		`"hosted":`:           `"unknown":`,
		drawn + `,"points"`:   `"name":"","points"`,
		drawn + "," + at:      `"name":"Drawn0","points":["nowhere"`,
		drawn + `,"points":[`: `"name":"NodeResourcesFit","points":[`,
		`"sources":[`:         `"sources":[{"profile":"x","name":"y","points":["podGroupPostFilter"]},`,
	} {
		if changed := strings.Replace(text, old, hostile, 1); changed == text {
			t.Errorf("the recording does not have %s", old)
		} else if _, _, err := play(changed); err == nil {
			t.Errorf("a recording with %s instead of %s is replayed", hostile, old)
		}
	}
}

// TestUndeclaredPluginsReplay: the points of a plugin that multiPoint enables, and that only its factory shows, are in
// the recording. It catches undeclaredPointsKept.
func TestUndeclaredPluginsReplay(t *testing.T) {
	plugins, err := app.Plugins{}.WithFramework(framework.Registration{Name: "Waiter", Undeclared: true,
		Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return &waiter{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := plugins.ParseConfig([]byte("apiVersion: kubescheduler.config.k8s.io/v1\n" +
		"kind: KubeSchedulerConfiguration\nprofiles: [{plugins: {multiPoint: {enabled: [{name: Waiter}]}}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := plugins.EngineConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	e, path := engine.New(cfg), filepath.Join(t.TempDir(), "tape")
	r, err := Create(path, DefaultMaxBytes, c, 5*time.Minute)
	if err == nil {
		err = r.Describe(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Observe(engine.Synced{}, e.Step(engine.Synced{}))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if events, err := replayStock(path); err != nil || events != 1 {
		t.Errorf("%d events, %v", events, err)
	}
}

// waiter is a plugin that makes each pod wait for Permit.
type waiter struct{ handle fwk.Handle }

func (*waiter) Name() string { return "Waiter" }

func (*waiter) Permit(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.Status, time.Duration) {
	return fwk.NewStatus(fwk.Wait), time.Hour
}

// TestWhatPluginsDoOnGoroutinesIsRecorded: a pod that waits for Permit is allowed on a goroutine of the plugin. The
// event that follows is in the recording, and the replay binds the pod at it. It catches hostedAllowUnnoticed.
func TestWhatPluginsDoOnGoroutinesIsRecorded(t *testing.T) {
	w := &waiter{}
	plugins, err := app.Plugins{}.WithFramework(framework.Registration{Name: "Waiter", Type: w,
		Factory: func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			w.handle = h
			return w, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := plugins.ParseConfig([]byte("apiVersion: kubescheduler.config.k8s.io/v1\n" +
		"kind: KubeSchedulerConfiguration\nprofiles: [{plugins: {permit: {enabled: [{name: Waiter}]}}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	posted := make(chan engine.Event, 10)
	cfg, _, err := plugins.Hosted(c, framework.Env{Post: func(ev engine.Event) { posted <- ev }})
	if err != nil {
		t.Fatal(err)
	}
	cfg.UnschedulableTimeout = record.Time(5 * time.Minute)
	e, intake := engine.New(cfg), convert.NewIntake()
	intake.KeepFull()
	path := filepath.Join(t.TempDir(), "tape")
	r, err := Create(path, DefaultMaxBytes, c, 5*time.Minute)
	if err == nil {
		err = r.Describe(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	var effects []engine.Effect
	step := func(ev engine.Event) {
		effects = e.Step(ev)
		r.Observe(ev, effects)
	}
	step(engine.NodeSet{Node: intake.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{"pods": resource.MustParse("10")}}})})
	step(engine.PodSet{Pod: intake.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"},
		Spec: v1.PodSpec{SchedulerName: v1.DefaultSchedulerName}})})
	for _, ev := range []engine.Event{engine.Synced{}, engine.Tick{Now: record.Second}, engine.Cycle{}} {
		step(ev)
	}
	go func() {
		w.handle.GetWaitingPod("u").Allow("Waiter")
		close(posted)
	}()
	binds := 0
	for ev := range posted {
		step(ev)
		for _, f := range effects {
			if _, is := f.(engine.Bind); is {
				binds++
			}
		}
	}
	if err := r.Close(); err != nil || binds != 1 {
		t.Fatalf("%d binds, %v", binds, err)
	}
	if events, err := replayStock(path); err != nil || events != 6 {
		t.Errorf("%d events, %v", events, err)
	}
}
