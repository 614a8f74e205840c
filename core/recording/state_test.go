// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"bytes"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/core/state"
	"github.com/kumiki-scheduler/kumiki/internal/resumetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

func config() engine.Config {
	return engine.Config{Profiles: []engine.Profile{engine.DefaultProfile("default-scheduler")}}
}

// small is the state of an engine with a node and two pods, of which one is on its way to the node.
func small() state.State {
	e, in := engine.New(config()), convert.NewIntake()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Allocatable = v1.ResourceList{v1.ResourcePods: apiresource.MustParse("10")}
	e.Step(engine.NodeSet{Node: in.Node(node)})
	e.Step(engine.Synced{})
	e.Step(engine.Tick{Now: record.Second})
	for _, name := range []string{"a", "b"} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
		p.Spec.SchedulerName = "default-scheduler"
		e.Step(engine.PodSet{Pod: in.Pod(p)})
	}
	e.Step(engine.Cycle{})
	return e.State()
}

// TestRecordsStayTheSame: what was one record before is one after it was written and read. Specs that are equal are
// one, too.
func TestRecordsStayTheSame(t *testing.T) {
	spec := &cluster.PodSpec{SchedulerName: "s"}
	a, b := &cluster.Pod{Name: "a", Spec: spec}, &cluster.Pod{Name: "b", Spec: spec}
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
	st := &state.State{
		Pending: []*cluster.Pod{a, b}, Edited: []*cluster.Pod{b},
		Cluster: cluster.State{Objects: []cluster.ObjectState{{API: volume, Assumed: volume}}},
	}
	cfg := config()
	got, err := resumetest.Read(recording.NewReader(), recording.AppendState(nil, st), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got.Pending[1] != got.Edited[0] || got.Pending[0] == got.Pending[1] || got.Pending[0].Spec != got.Pending[1].Spec {
		t.Errorf("pods %v, edited %v", got.Pending, got.Edited)
	}
	if o := got.Cluster.Objects[0]; o.API != o.Assumed {
		t.Errorf("object %p, assumed as %p", o.API, o.Assumed)
	}
}

// TestTimesOfAllocations: the time of an assumed allocation has nanoseconds.
func TestTimesOfAllocations(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 123456789))
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	claim.Status.Allocation = &resourceapi.AllocationResult{AllocationTimestamp: &at}
	st := &state.State{Cluster: cluster.State{Objects: []cluster.ObjectState{{Assumed: claim}}}}
	cfg := config()
	got, err := resumetest.Read(recording.NewReader(), recording.AppendState(nil, st), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	again := got.Cluster.Objects[0].Assumed.(*resourceapi.ResourceClaim).Status.Allocation.AllocationTimestamp
	if again.UnixNano() != at.UnixNano() {
		t.Errorf("allocated at %v, want %v", again, at)
	}
}

// FuzzState reads lines that may be anything, and resumes an engine with what they hold.
func FuzzState(f *testing.F) {
	st := small()
	text := recording.AppendState(nil, &st)
	f.Add(text)
	for at := 0; at < len(text); at += 97 {
		f.Add(append(bytes.Clone(text[:at]), text[min(at+3, len(text)):]...))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg := config()
		st, err := resumetest.Read(recording.NewReader(), text, &cfg)
		if err != nil {
			return
		}
		if e, err := engine.Resume(cfg, *st); err == nil {
			e.State()
		}
	})
}
