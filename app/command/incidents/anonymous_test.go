// SPDX-License-Identifier: Apache-2.0

package incidents

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
	"github.com/kumiki-scheduler/kumiki/record"
)

// anonymized writes a bundle with pseudonyms.
func anonymized(t *testing.T, name string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	if err := Anonymize(name, app.Plugins{}, &out); err != nil {
		return "", err
	}
	to := filepath.Join(t.TempDir(), "anonymous.kumiki")
	if err := os.WriteFile(to, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return to, nil
}

// textOf returns all parts of a bundle, and its manifest.
func textOf(t *testing.T, name string) string {
	t.Helper()
	b, err := bundle.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	text := fmt.Sprint(b.Manifest)
	for _, p := range b.Manifest.Parts {
		if p.Missing != "" {
			continue
		}
		content, err := b.Open(p.Kind)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(content)
		content.Close()
		if err != nil {
			t.Fatal(err)
		}
		text += string(data)
	}
	return text
}

// world is a history with names that a test draws.
type world struct {
	*cluster
	t *rapid.T
	// spaces, nodes, keys and values are the names; each has the word secret in it.
	spaces, nodes, keys, values []string
	all                         map[string]*v1.Pod // UID -> pod
}

func drawNames(t *rapid.T, label string) []string {
	return rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,2}-?secret[.-]?[a-z0-9]{1,3}`), 2, 5, rapid.ID).Draw(t, label)
}

func (w *world) one(names []string, label string) string {
	return rapid.SampledFrom(names).Draw(w.t, label)
}

func (w *world) node(name string) {
	w.step(engine.NodeSet{Node: w.intake.Node(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name,
			w.one(w.keys, "key"): w.one(w.values, "value"), "topology.kubernetes.io/zone": w.one(w.values, "zone")}},
		Spec: v1.NodeSpec{Taints: rapid.SampledFrom([][]v1.Taint{nil, nil, {{Key: w.one(w.keys, "taint"), Effect: v1.TaintEffectNoSchedule}}}).Draw(w.t, "taints")},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("4Gi"),
			"pods": resource.MustParse("10")}}})})
}

func (w *world) pod(i int) *v1.Pod {
	label := map[string]string{w.one(w.keys, "own key"): w.one(w.values, "own value")}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.one(w.spaces, "namespace"), Name: fmt.Sprintf("%s-%d", w.one(w.values, "name"), i),
		UID: types.UID(fmt.Sprint("u", i)), Labels: label}, Spec: v1.PodSpec{SchedulerName: "default-scheduler",
		Containers: []v1.Container{{Image: "registry.secret.com/" + w.one(w.values, "image"), Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{"cpu": resource.MustParse(rapid.SampledFrom([]string{"1", "3", "9"}).Draw(w.t, "cpu"))}}}}}}
	switch rapid.IntRange(0, 6).Draw(w.t, "constraint") {
	case 5:
		pod.Annotations = map[string]string{"pod_group": w.one(w.values, "gang"), "pod_group_size": "2"}
	case 6:
		pod.Spec.Volumes = []v1.Volume{{Name: w.one(w.keys, "volume"), VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: w.one(w.values, "claim")}}}}
	case 1:
		pod.Spec.NodeSelector = map[string]string{w.one(w.keys, "selected key"): w.one(w.values, "selected value")}
	case 2:
		pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: "topology.kubernetes.io/zone", LabelSelector: &metav1.LabelSelector{MatchLabels: label}}}}}
	case 3:
		pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "kubernetes.io/hostname",
			WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: label}}}
	case 4:
		pod.Spec.Tolerations = []v1.Toleration{{Key: w.one(w.keys, "tolerated"), Operator: v1.TolerationOpExists}}
		priority := rapid.Int32Range(0, 2).Draw(w.t, "priority")
		pod.Spec.Priority = &priority
	}
	return pod
}

func (w *world) play(pods, from int) {
	for i := from; i < from+pods; i++ {
		w.now += record.Second
		w.step(engine.Tick{Now: w.now})
		pod := w.pod(i)
		w.all[string(pod.UID)] = pod
		w.step(engine.PodSet{Pod: w.intake.Pod(pod)})
		for _, e := range slices.Clone(w.step(engine.Cycle{})) {
			switch e := e.(type) {
			case engine.Bind:
				pod := w.all[e.Pod.UID]
				w.step(engine.BindDone{Pod: e.Pod, Node: e.Node})
				pod.Spec.NodeName = e.Node
				w.step(engine.PodSet{Pod: w.intake.Pod(pod)})
			case engine.Condition:
				pod := w.all[e.Pod.UID]
				pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: e.Reason, Message: e.Message}}
				w.step(engine.PodSet{Pod: w.intake.Pod(pod)})
			}
		}
		if rapid.IntRange(0, 5).Draw(w.t, "a change") == 0 {
			w.node(w.one(w.nodes, "changed"))
		}
	}
}

// TestPseudonymsReplay: with random names, labels, taints, affinities and images, and States in the middle, a bundle
// with pseudonyms replays with the same decisions, and has none of the names.
func TestPseudonymsReplay(t *testing.T) {
	checks := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{cluster: newCluster(t, Options{}), t: rt, spaces: drawNames(rt, "spaces"), nodes: drawNames(rt, "nodes"),
			keys: drawNames(rt, "keys"), values: drawNames(rt, "values"), all: map[string]*v1.Pod{}}
		w.intake.DeclareGangs(convert.GangRules{Annotation: true})
		for _, name := range w.nodes {
			w.node(name)
		}
		w.step(engine.Synced{})
		w.play(rapid.IntRange(3, 12).Draw(rt, "pods"), 0)
		name, in := w.write()
		to, err := anonymized(t, name)
		if err != nil {
			rt.Fatalf("%v", err)
		}
		report, err := Read(to)
		if err != nil || !report.Anonymous {
			rt.Fatalf("%+v, %v", report, err)
		}
		if r, err := Replay(to, app.Plugins{}, report); err != nil || r.Different > 0 || r.Events != in.Events {
			rt.Fatalf("replayed %+v, %v", r, err)
		}
		if text := textOf(t, to); strings.Contains(text, "secret") {
			i := strings.Index(text, "secret")
			rt.Fatalf("a name is left: %s", text[max(0, i-200):min(len(text), i+100)])
		}
		if checks++; checks == 1 && !strings.Contains(textOf(t, name), "secret") {
			rt.Fatal("the names were not in the bundle before")
		}
	})
}

// TestAnonymizeRefuses: a bundle whose replay differs is not written again, since nothing would show that the one with
// pseudonyms is right.
func TestAnonymizeRefuses(t *testing.T) {
	c := newCluster(t, Options{})
	c.run(10, "p", false)
	good, _ := c.write()
	other := rewrite(t, good, bundle.Digests, func(sums []byte) []byte { sums[len(sums)-1] ^= 1; return sums })
	for want, name := range map[string]string{"has other effects than at the time": other,
		"no digests": rewrite(t, good, bundle.Recording, func([]byte) []byte { return []byte("{}\n") })} {
		if _, err := anonymized(t, name); err == nil || !strings.Contains(err.Error(), want) && want != "no digests" {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestAnonymousParts: the parts that may have names elsewhere are left out, with the reason, and the report has
// pseudonyms.
func TestAnonymousParts(t *testing.T) {
	c := newCluster(t, Options{Scheduler: "secret-host", Metrics: func(w io.Writer) error {
		_, err := io.WriteString(w, "secret-metrics")
		return err
	}, Dir: filepath.Join(t.TempDir(), "secret"), MaxFiles: 3, MaxBytes: 1 << 30})
	if err := os.Mkdir(c.store.opts.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c.run(10, "secret", false)
	in := c.store.Write(t.Context(), incident.Finding{Cause: incident.ByHand, At: c.now, Detail: "pod default/secret7"})
	if in.Error != "" || in.File == "" {
		t.Fatalf("%+v", in)
	}
	to, err := anonymized(t, in.File)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, kind := range []bundle.Kind{bundle.Metrics, bundle.Goroutines} {
		if p, ok := b.Part(kind); !ok || p.Missing != leftOut {
			t.Errorf("part %s is %+v", kind, p)
		}
	}
	if text := textOf(t, to); strings.Contains(text, "secret") {
		t.Error("a name is left")
	}
	if report, err := Read(to); err != nil || !strings.HasPrefix(report.Detail, "pod default/n") || report.ID != in.ID {
		t.Errorf("%+v, %v", report, err)
	}
}
