// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// recorded plays a small story on an engine and returns its recording.
func recorded(t *testing.T, limit int64) []byte {
	t.Helper()
	o := app.DefaultOptions()
	o.Config.ClientConnection.Kubeconfig = "/secret/place"
	cfg, err := app.EngineConfig(o.Config)
	if err != nil {
		t.Fatal(err)
	}
	cfg.UnschedulableTimeout = record.Time(o.UnschedulableTimeout)
	path := filepath.Join(t.TempDir(), "tape")
	rec, err := app.NewRecorder(klog.Background(), path, o, limit)
	if err != nil {
		t.Fatal(err)
	}
	e, in := engine.New(cfg), cluster.NewIntake()
	step := func(ev engine.Event) { rec.See(ev, e.Step(ev)) }
	step(engine.Tick{Now: record.Second})
	for _, name := range []string{"a", "b", "c"} {
		step(engine.NodeSet{Node: in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{
			Allocatable: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("2"), v1.ResourcePods: apiresource.MustParse("10")}}})})
	}
	step(engine.Synced{})
	for _, cpu := range []string{"1", "1", "50E"} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p" + cpu, Namespace: "default", UID: "u"}}
		p.Spec.SchedulerName = "default-scheduler"
		p.Spec.Containers = []v1.Container{{Env: []v1.EnvVar{{Name: "PASSWORD", Value: "hush"}},
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}}
		step(engine.PodSet{Pod: in.Pod(p)})
		step(engine.Cycle{})
		step(engine.PodGone{Pod: record.PodRef{Namespace: "default", Name: p.Name, UID: "u"}})
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestReplayIsByteForByte: a recording plays to the same effects; one that was tampered with does not.
// Mutant: an engine whose draw depends on anything but seed and decision number.
func TestReplayIsByteForByte(t *testing.T) {
	tape := recorded(t, app.DefaultTapeBytes)
	played, err := app.Replay(bytes.NewReader(tape), nil)
	if err != nil {
		t.Fatal(err)
	}
	if played.Decisions != 3 || played.Events != 14 {
		t.Errorf("played %+v, want 14 events with 3 decisions", played)
	}
	other := bytes.Replace(tape, []byte(`"node":"`), []byte(`"node":"x`), 1)
	if bytes.Equal(other, tape) {
		t.Fatal("the recording names no node")
	}
	var differs *app.Differs
	if _, err := app.Replay(bytes.NewReader(other), nil); !errors.As(err, &differs) {
		t.Errorf("a changed effect is not seen: %v", err)
	}
	lost := append([]byte(nil), tape[:bytes.LastIndex(tape[:len(tape)-1], []byte("\n{\"effect"))]...)
	if _, err := app.Replay(bytes.NewReader(lost), nil); err != nil && !errors.As(err, &differs) {
		t.Errorf("a recording that ends in the middle of a step: %v", err)
	}
}

// TestRecordingHoldsNoSecrets: neither environment values nor where the API server is.
func TestRecordingHoldsNoSecrets(t *testing.T) {
	tape := string(recorded(t, app.DefaultTapeBytes))
	for _, word := range []string{"hush", "PASSWORD", "/secret/place"} {
		if strings.Contains(tape, word) {
			t.Errorf("the recording holds %q", word)
		}
	}
}

// TestRecordingIsBounded: at its bound it ends with a whole line, and what there is plays.
func TestRecordingIsBounded(t *testing.T) {
	tape := recorded(t, 4000)
	if len(tape) > 4000 || len(tape) == 0 {
		t.Fatalf("the recording has %d bytes, 4000 are allowed", len(tape))
	}
	if _, err := app.Replay(bytes.NewReader(tape), nil); err != nil {
		t.Error(err)
	}
}

// TestReplayRefusesOtherFiles with a clear error.
func TestReplayRefusesOtherFiles(t *testing.T) {
	for _, text := range []string{"", "hello\n", "{}\n", `{"format":"kumiki-tape/1","config":{}}` + "\n"} {
		if _, err := app.Replay(strings.NewReader(text), nil); err == nil {
			t.Errorf("%q is played", text)
		}
	}
}
