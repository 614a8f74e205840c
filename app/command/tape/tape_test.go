// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/record"
)

// recorded plays a short scenario to an engine and returns the recording: two nodes, a pod that fits and one that does
// not.
func recorded(t *testing.T, maxBytes int64) string {
	t.Helper()
	return recordedWith(t, maxBytes, app.Plugins{}, config.Default(), nil)
}

// recordedWith is recorded for a configuration and foreign code; more happens at the end.
func recordedWith(t *testing.T, maxBytes int64, plugins app.Plugins, c config.Resolved, foreign engine.Foreign,
	more ...engine.Event) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tape")
	r, err := Create(path, maxBytes, c, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := plugins.EngineConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Profiles[0].Foreign = foreign
	cfg.UnschedulableTimeout = record.Time(5 * time.Minute)
	e := engine.New(cfg)
	step := func(ev engine.Event) {
		effects := e.Step(ev)
		r.Observe(ev, effects)
	}
	intake := convert.NewIntake()
	for _, name := range []string{"n1", "n2"} {
		step(engine.NodeSet{Node: intake.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("2"),
				"memory": resource.MustParse("4Gi"), "pods": resource.MustParse("10")}}})})
	}
	for _, cpu := range []string{"1", "3"} {
		step(engine.PodSet{Pod: intake.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p" +
			cpu, UID: types.UID("u" + cpu)},
			Spec: v1.PodSpec{SchedulerName: "default-scheduler",
				Containers: []v1.Container{{Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}})})
	}
	for _, ev := range append([]engine.Event{engine.Synced{}, engine.Tick{Now: record.Second}, engine.Cycle{},
		engine.Cycle{}}, more...) {
		step(ev)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// play counts the events of a recording and those with other effects than at the time.
func play(text string) (events, different int, err error) { return playWith(text, app.Plugins{}) }

func playWith(text string, plugins app.Plugins) (events, different int, err error) {
	err = Play(strings.NewReader(text), plugins, func(_ *engine.Engine, s Step) error {
		events++
		if s.Differs() {
			different++
		}
		return nil
	})
	return events, different, err
}

// TestFeaturesAreRecorded: a recording is read with the features that it was made with, here those of a scheduler to
// which shape is unknown. One without features is older than them. It catches featuresNotRecorded.
func TestFeaturesAreRecorded(t *testing.T) {
	f := config.DefaultFeatures()
	f.StorageCapacityScoring = false
	plugins := app.Plugins{}.With(f)
	text := recordedWith(t, DefaultMaxBytes, plugins, plugins.DefaultConfig(), nil)
	if _, different, err := play(text); err != nil || different > 0 {
		t.Errorf("with a feature off: %d events differ, %v", different, err)
	}
	const on, off = `"StorageCapacityScoring":true`, `"StorageCapacityScoring":false`
	if !strings.Contains(text, off) || strings.Contains(text, on) {
		t.Errorf("the recording says %.200s", text)
	}
	if _, _, err := play(strings.Replace(recorded(t, DefaultMaxBytes), on, off, 1)); err == nil ||
		!strings.Contains(err.Error(), "unexpected field `shape`") {
		t.Errorf("a recording of a configuration that its features do not allow: %v", err)
	}
	old, _, _ := strings.Cut(recorded(t, DefaultMaxBytes), "\n")
	if _, _, err := play(strings.Replace(old, `"features":`, `"unknown":`, 1) + "\n"); err != nil {
		t.Errorf("a recording without features: %v", err)
	}
}

// TestSameAgain: a recording that is played has the same effects, byte for byte.
func TestSameAgain(t *testing.T) {
	text := recorded(t, DefaultMaxBytes)
	if !strings.Contains(text, `{"effect":"Bind"`) {
		t.Fatalf("nothing was bound:\n%s", text)
	}
	if events, different, err := play(text); err != nil || events != 8 || different != 0 {
		t.Errorf("%d events, %d different, %v", events, different, err)
	}
}

// TestOtherEffects: a single changed byte of an effect shows.
func TestOtherEffects(t *testing.T) {
	text := recorded(t, DefaultMaxBytes)
	i := strings.Index(text, `{"effect":"Bind"`)
	j := i + strings.Index(text[i:], `"Node":"n`) + len(`"Node":"n`)
	changed := text[:j] + "9" + text[j+1:]
	if _, different, err := play(changed); err != nil || different != 1 {
		t.Errorf("%d different, %v", different, err)
	}
}

// TestCutShort: a bounded recording holds whole steps, and one cut by a crash plays up to its last whole line.
func TestCutShort(t *testing.T) {
	whole := recorded(t, DefaultMaxBytes)
	bounded := recorded(t, int64(len(whole)-10))
	if !strings.HasPrefix(whole, bounded) || len(bounded) >= len(whole) {
		t.Error("a bounded recording is not the beginning of the whole")
	}
	if events, different, err := play(bounded); err != nil || events != 7 || different != 0 {
		t.Errorf("bounded: %d events, %d different, %v", events, different, err)
	}
	line := bytes.LastIndex([]byte(whole[:len(whole)-1]), []byte(`{"event"`))
	if events, different, err := play(whole[:line+5]); err != nil || events != 7 || different != 0 {
		t.Errorf("cut: %d events, %d different, %v", events, different, err)
	}
}

// TestNotARecording: a file that is not a recording is rejected, with the line.
func TestNotARecording(t *testing.T) {
	whole := recorded(t, DefaultMaxBytes)
	first, rest, _ := strings.Cut(whole, "\n")
	for text, want := range map[string]string{
		"":     "not a recording",
		"{}\n": "not a recording",
		rest:   "not a recording",
		first + "\n" + `{"effect":"Bind","data":{}}` + "\n": "line 2: an effect before the first event",
		first + "\n" + `{"event":"Nonsense","data":{}}` +
			"\n": `line 2: reading a line of a tape: unknown event "Nonsense"`,
	} {
		if _, _, err := play(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %s", text, err, want)
		}
	}
}

// TestKeepsOld: a recording does not overwrite a file.
func TestKeepsOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, DefaultMaxBytes, config.Default(), time.Minute); err == nil {
		t.Error("an old file was overwritten")
	}
}

// picky is foreign code that rejects n1 and knows no pods or nodes.
type picky struct{ engine.Foreign }

func (picky) Takes(*cluster.Pod) bool    { return true }
func (picky) Binder(*cluster.Pod) string { return "" }

func (picky) Preempts(*cluster.Pod) bool { return false }

func (picky) Preempt(*cluster.Pod, []place.ForeignVictims,
	func(string) ([]record.PodRef, bool)) ([]place.ForeignVictims, error) {
	panic("no pod is evicted here")
}

func (picky) Filter(*cluster.Pod, []string) (map[string]place.ForeignRejection, error) {
	return map[string]place.ForeignRejection{"n1": {By: "http://127.0.0.1:1", Reason: "dislikes it"}}, nil
}

// TestForeignAnswersFromTheRecording: a replay asks no extender; what it answered at the time stands in the
// recording. The one of this configuration does not even listen.
func TestForeignAnswersFromTheRecording(t *testing.T) {
	c, err := config.Parse([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		"extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter, weight: 1}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	text := recordedWith(t, DefaultMaxBytes, app.Plugins{}, c, picky{})
	if !strings.Contains(text, `"effect":"Heard"`) || !strings.Contains(text, `"Node":"n2"`) {
		t.Fatalf("no extender was called, or the pod did not go to n2:\n%s", text)
	}
	if events, different, err := play(text); err != nil || events != 8 || different != 0 {
		t.Errorf("%d events, %d different, %v", events, different, err)
	}
	deaf := strings.ReplaceAll(text, `"By":"http://127.0.0.1:1","Reason":"dislikes it"`,
		`"By":"http://127.0.0.1:1","Reason":"dislikes it much"`)
	if _, different, err := play(deaf); err != nil || different != 0 {
		t.Errorf("another answer: %d different, %v; a reason of a node that was not needed changes nothing else",
			different, err)
	}
}

// choosy is an extender that only takes part in the choice of victims: it chooses the last candidate node.
type choosy struct{ picky }

func (choosy) Takes(*cluster.Pod) bool    { return false }
func (choosy) Preempts(*cluster.Pod) bool { return true }

func (choosy) Preempt(_ *cluster.Pod, asked []place.ForeignVictims,
	_ func(string) ([]record.PodRef, bool)) ([]place.ForeignVictims, error) {
	return asked[len(asked)-1:], nil
}

// TestVictimsFromTheRecording: what an extender said of victims is played, too.
func TestVictimsFromTheRecording(t *testing.T) {
	c, err := config.Parse([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		"extenders: [{urlPrefix: 'http://127.0.0.1:1', preemptVerb: preempt}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	intake := convert.NewIntake()
	pod := func(name, node, cpu string, priority int32) engine.Event {
		return engine.PodSet{Pod: intake.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			UID: types.UID("u-" + name)},
			Spec: v1.PodSpec{SchedulerName: "default-scheduler", NodeName: node, Priority: &priority,
				Containers: []v1.Container{{
					Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}})}
	}
	text := recordedWith(t, DefaultMaxBytes, app.Plugins{}, c, choosy{}, pod("low1", "n1", "1", 0),
		pod("low2", "n2", "1", 0),
		pod("high", "", "2", 10), engine.Cycle{})
	if !strings.Contains(text, `"Victims":[{"Node":"n2"`) || !strings.Contains(text, `"effect":"Evict"`) ||
		!strings.Contains(text, `"Nominate":"n2"`) {
		t.Fatalf("no extender was called, or no pod is evicted from n2:\n%s", text)
	}
	if events, different, err := play(text); err != nil || events != 12 || different != 0 {
		t.Errorf("%d events, %d different, %v", events, different, err)
	}
}

// TestObjectsAndWritesOnTheTape: volumes stand in a recording, and what is written about them, too.
func TestObjectsAndWritesOnTheTape(t *testing.T) {
	ev := engine.ObjectSet{Object: &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv",
		ResourceVersion: "7"}}}
	line := recording.AppendEvent(nil, ev)
	back, ok, err := recording.NewReader().Event(bytes.TrimSpace(line))
	if err != nil || !ok {
		t.Fatal(err, ok)
	}
	if pv, is := back.(engine.ObjectSet).Object.(*v1.PersistentVolume); !is || pv.Name != "pv" ||
		pv.ResourceVersion != "7" {
		t.Errorf("came back as %#v", back)
	}
	effects := recording.AppendEffects(nil, []engine.Effect{engine.Prepare{Node: "n1", Writes: []cluster.Write{
		cluster.SelectNode{Target: cluster.Target{Kind: cluster.KindClaim, Name: "data"}, Node: "n1"}}}})
	if !strings.Contains(string(effects), `{"Write":"SelectNode","Data":{"Kind":"PersistentVolumeClaim"`) {
		t.Errorf("written as %s", effects)
	}
}

// noSecond is a custom plugin that rejects a node.
type noSecond struct{}

func (noSecond) Name() string { return "NoSecond" }

func (noSecond) PrepareFilter(cluster.Snapshot, *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{Filter: plugin.FilterByNode(noSecond{})}
}

func (noSecond) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	if v.Node.Name == "n2" {
		return 1
	}
	return plugin.Fit
}

func (noSecond) Reasons(plugin.Code) []string { return []string{"node(s) were second"} }

// TestCustomPluginInARecording: a recording names the custom plugins. A program with them replays it; one without them
// says which it lacks.
func TestCustomPluginInARecording(t *testing.T) {
	plugins, err := app.NewPlugins(plugin.WithoutArgs(noSecond{}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := plugins.ParseConfig([]byte("apiVersion: kubescheduler.config.k8s.io/v1\n" +
		"kind: KubeSchedulerConfiguration\nprofiles: [{plugins: {multiPoint: {enabled: [{name: NoSecond}]}}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	text := recordedWith(t, DefaultMaxBytes, plugins, c, nil)
	if !strings.Contains(text, `"nodes":2,"feasible":1,"tied":1,"path":"scanned","winner":{"node":"n1"`) {
		t.Fatalf("the plugin took no part:\n%s", text)
	}
	if events, different, err := playWith(text, plugins); err != nil || events != 8 || different != 0 {
		t.Errorf("%d events, %d different, %v", events, different, err)
	}
	_, _, err = play(text)
	if err == nil || !strings.Contains(err.Error(), "custom plugins that this program does not have: NoSecond") {
		t.Errorf("without the plugin: %v", err)
	}
}

// TestBeginsWithAState: a recording may begin in the middle of the life of an engine. It has the same effects, and one
// that ends within its State is no recording.
func TestBeginsWithAState(t *testing.T) {
	c := config.Default()
	var plugins app.Plugins
	cfg, err := plugins.EngineConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	cfg.UnschedulableTimeout = record.Time(5 * time.Minute)
	e := engine.New(cfg)
	var r *Recorder
	path := filepath.Join(t.TempDir(), "tape")
	events := 0
	err = Play(strings.NewReader(recorded(t, DefaultMaxBytes)), plugins, func(_ *engine.Engine, s Step) error {
		if s.Number == 7 { // one of two pods is decided
			st := e.State()
			if r, err = CreateFrom(path, DefaultMaxBytes, c, 5*time.Minute, &st); err != nil {
				return err
			}
		}
		effects := e.Step(s.Event)
		if r != nil {
			r.Observe(s.Event, effects)
			events++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	if played, different, err := play(text); err != nil || played != events || events == 0 || different != 0 {
		t.Errorf("%d events of %d, %d different, %v", played, events, different, err)
	}
	state := strings.Index(text, `{"state":`)
	for cut, want := range map[int]string{
		state:      "the recording ends before the state with which it begins",
		state + 40: "the recording ends before the state with which it begins",
	} {
		if _, _, err := play(text[:cut]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("cut at %d: %v, want %s", cut, err, want)
		}
	}
	for what, changed := range map[string]string{
		"an unknown record":   strings.Replace(text, `{"record":"Pod"`, `{"record":"Prod"`, 1),
		"a record too few":    strings.Replace(text, `"spec":0`, `"spec":9`, 1),
		"a pod that is twice": strings.Replace(text, `"Pending":[0`, `"Pending":[99`, 1),
	} {
		if changed == text {
			t.Errorf("%s: the recording has none of it:\n%s", what, text)
		} else if _, _, err := play(changed); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
