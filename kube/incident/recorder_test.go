// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
)

// engineConfig is a configuration with the default plugins.
func engineConfig() engine.Config {
	return engine.Config{Seed: 7, Profiles: []engine.Profile{engine.DefaultProfile("default-scheduler")},
		Less: basic.PrioritySort{}, InitialBackoff: record.Second, MaxBackoff: 10 * record.Second,
		UnschedulableTimeout: 300 * record.Second}
}

// flown is an engine with a recorder, of which each step's digest is known.
type flown struct {
	*Recorder
	engine  *engine.Engine
	intake  *convert.Intake
	now     record.Time
	events  []engine.Event
	digests []uint64
}

func fly(t testing.TB, limit int) *flown {
	t.Helper()
	f := &flown{engine: engine.New(engineConfig()), intake: convert.NewIntake()}
	f.Recorder = NewRecorder(f.engine.State)
	f.limit = limit
	f.clock = func() time.Time { return time.Unix(0, int64(f.now)) }
	f.present = f.begin(0)
	return f
}

func (f *flown) step(ev engine.Event) []engine.Effect {
	f.Before(ev)
	effects := f.engine.Step(ev)
	var d Digester
	f.events, f.digests = append(f.events, ev), append(f.digests, d.Digest(effects))
	f.After(ev, effects)
	return effects
}

// run adds nodes and lets pods come, be bound and go.
func (f *flown) run(pods int) {
	for i := range 3 {
		f.step(engine.NodeSet{Node: f.intake.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)},
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("8"),
				"memory": resource.MustParse("4Gi"), "pods": resource.MustParse("10")}}})})
	}
	f.step(engine.Synced{})
	for i := range pods {
		f.now += record.Second
		f.step(engine.Tick{Now: f.now})
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i),
			UID: types.UID(fmt.Sprint("u", i))}, Spec: v1.PodSpec{SchedulerName: "default-scheduler",
			Containers: []v1.Container{{Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(1 + i%9))}}}}}}
		f.step(engine.PodSet{Pod: f.intake.Pod(pod)})
		for _, e := range f.step(engine.Cycle{}) {
			if b, is := e.(engine.Bind); is {
				f.step(engine.BindDone{Pod: b.Pod, Node: b.Node})
				pod.Spec.NodeName = b.Node
				f.step(engine.PodSet{Pod: f.intake.Pod(pod)})
			}
		}
		if gone := i - 6; gone >= 0 {
			f.step(engine.PodGone{Pod: record.PodRef{Namespace: "default", Name: fmt.Sprint("p", gone),
				UID: fmt.Sprint("u", gone)}})
		}
	}
}

// TestACutReplays: what is kept is a State and all events since, within the bound; an engine that is resumed from it
// gives effects with the same digests. The event in hand is known.
func TestACutReplays(t *testing.T) {
	const limit = 200_000
	f := fly(t, limit)
	f.run(1000)
	f.Before(engine.Cycle{})
	c := f.Cut()
	if _, is := c.InHand.(engine.Cycle); !is {
		t.Errorf("in hand is %T", c.InHand)
	}
	if len(c.Offsets) != 2 || c.Before == 0 || c.Before+c.Count != len(f.events) {
		t.Fatalf("%d segments, %d events before and %d since, of %d", len(c.Offsets), c.Before, c.Count, len(f.events))
	}
	bytes, i := 0, 0
	again, err := engine.Resume(engineConfig(), *c.State)
	if err != nil {
		t.Fatal(err)
	}
	var d Digester
	c.Each(func(e Entry, _ engine.Heard) {
		bytes += sizeOf(e.Event)
		if want := f.digests[c.Before+i]; e.Digest != want {
			t.Fatalf("event %d of the cut has digest %x, want %x", i, e.Digest, want)
		}
		if got := d.Digest(again.Step(e.Event)); got != e.Digest {
			t.Fatalf("event %d of the cut, %T: a resumed engine has digest %x, want %x", i, e.Event, got, e.Digest)
		}
		i++
	})
	if i != c.Count || bytes > 2*(limit+sizeOfOther) || bytes < limit {
		t.Errorf("%d events of %d were visited, with %d bytes", i, c.Count, bytes)
	}
}

// TestStatesAreTakenSeldom: if a State takes long, the next one waits, up to twice the size of a segment.
func TestStatesAreTakenSeldom(t *testing.T) {
	const limit = 100_000
	for cost, want := range map[time.Duration]int{0: limit, time.Second: 2 * limit} {
		f := fly(t, limit)
		taken, most := 0, 0
		f.state = func() engine.State {
			taken++
			most = max(most, f.present.bytes)
			f.now += record.Time(cost)
			return f.engine.State()
		}
		f.run(300)
		if taken < 3 || most < want || most > want+sizeOfOther {
			t.Errorf("a State takes %v: %d were taken, the largest segment has %d bytes, want %d", cost, taken, most, want)
		}
	}
}

// TestAnswersOfForeignCodeAreKept: they are inputs of a replay, with the event to which they belong.
func TestAnswersOfForeignCodeAreKept(t *testing.T) {
	f := fly(t, 3000)
	for i := range 100 {
		var effects []engine.Effect
		if i%7 == 0 {
			number := fmt.Sprint(f.present.before + f.present.count)
			effects = []engine.Effect{engine.Heard{Answers: []engine.Answer{{Err: number}}},
				engine.Heard{Hosted: []byte(number)}}
		}
		f.After(engine.Cycle{}, effects)
	}
	c := f.Cut()
	n, with := c.Before, 0
	c.Each(func(_ Entry, heard engine.Heard) {
		answers := heard.Answers
		if n%7 == 0 != (len(answers) == 1 && answers[0].Err == fmt.Sprint(n) && string(heard.Hosted) == fmt.Sprint(n)) {
			t.Errorf("event %d has answers %v and %q", n, answers, heard.Hosted)
		}
		with += len(answers)
		n++
	})
	if n != 100 || with < 2 || len(c.Offsets) != 2 {
		t.Errorf("%d events, %d with answers, %d segments", n, with, len(c.Offsets))
	}
}

// TestDigestsCoverEveryField: a change of any field of an effect changes the digest, but for the path of a decision and
// for answers of foreign code.
func TestDigestsCoverEveryField(t *testing.T) {
	full := func() []engine.Effect {
		return []engine.Effect{filled[engine.Moved](), filled[engine.Decided](), filled[engine.Wake](),
			filled[engine.WriteEvent](), filled[engine.Bind](), filled[engine.Condition](), filled[engine.Evict](),
			filled[engine.GangStatus](), filled[engine.Recall](), filled[engine.Trouble]()}
	}
	var d Digester
	want := d.Digest(full())
	if again := d.Digest(full()); again != want {
		t.Fatalf("equal effects have digests %x and %x", again, want)
	}
	fields := 0
	for i, e := range full() {
		name := reflect.TypeOf(e).Name()
		paths := changeOne(reflect.ValueOf(&e).Elem(), name, -1)
		for n, path := range paths {
			changed := full()
			v := reflect.New(reflect.TypeOf(e)).Elem()
			v.Set(reflect.ValueOf(changed[i]))
			changeOne(v, name, n)
			changed[i] = v.Interface().(engine.Effect)
			if differs := d.Digest(changed) != want; differs == strings.HasSuffix(path, ".Decision.Path") {
				t.Errorf("%s: a change of it changes the digest: %v", path, differs)
			}
		}
		fields += len(paths)
	}
	if fields < 80 {
		t.Errorf("%d fields", fields)
	}
	if d.Digest([]engine.Effect{engine.Heard{}}) != d.Digest([]engine.Effect{engine.Heard{Answers: []engine.Answer{{Err: "x"}}}}) {
		t.Error("answers of foreign code change the digest")
	}
}

// filled returns an effect with a value in each field.
func filled[T any]() T {
	var e T
	fill(reflect.ValueOf(&e).Elem())
	return e
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(7)
	case reflect.Uint64, reflect.Uint8:
		v.SetUint(7)
	}
}

// changeOne changes the nth simple field of a value, none if n is negative, and returns the paths of all.
func changeOne(v reflect.Value, name string, n int) (paths []string) {
	if v.Kind() == reflect.Interface {
		c := reflect.New(v.Elem().Type()).Elem()
		c.Set(v.Elem())
		v = c
	}
	leaves(v, name, func(path string, change func()) {
		if len(paths) == n {
			change()
		}
		paths = append(paths, path)
	})
	return paths
}

// leaves visits each simple field of a value that is filled, with a function that changes it.
func leaves(v reflect.Value, path string, visit func(path string, change func())) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			leaves(v.Elem(), path, visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			leaves(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			leaves(v.Index(0), path, visit)
		}
	case reflect.String:
		visit(path, func() { v.SetString("y") })
	case reflect.Int, reflect.Int64, reflect.Int32:
		visit(path, func() { v.SetInt(8) })
	case reflect.Uint64, reflect.Uint8:
		visit(path, func() { v.SetUint(8) })
	case reflect.Bool:
		visit(path, func() { v.SetBool(!v.Bool()) })
	}
}

// TestTheEventInHand: a bundle that is written during a Step has its event apart, and one that is written after it has
// it among the others.
func TestTheEventInHand(t *testing.T) {
	r := NewRecorder(func() engine.State { return engine.State{} })
	r.Before(engine.Cycle{})
	if c := r.Cut(); c.InHand != (engine.Cycle{}) || c.Count != 0 {
		t.Errorf("during the Step: %v in hand, %d events", c.InHand, c.Count)
	}
	r.After(engine.Cycle{}, nil)
	if c := r.Cut(); c.InHand != nil || c.Count != 1 {
		t.Errorf("after the Step: %v in hand, %d events", c.InHand, c.Count)
	}
}
