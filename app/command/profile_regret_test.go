// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// twoNodes is a cluster of two nodes with pods of the namespace shop.
type twoNodes struct {
	intake *convert.Intake
	engine func(engine.Event) []engine.Effect
	bind   engine.Bind // the last one
}

func (s *twoNodes) step(ev engine.Event) {
	for _, f := range s.engine(ev) {
		if b, is := f.(engine.Bind); is {
			s.bind = b
		}
	}
}

// open makes the nodes small and large.
func (s *twoNodes) open(now record.Time) {
	for name, cpu := range map[string]string{"small": "8", "large": "32"} { // order: the nodes are not equal
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("64Gi"),
			v1.ResourcePods: resource.MustParse("110")}
		s.step(engine.NodeSet{Node: s.intake.Node(n)})
	}
	s.step(engine.Synced{})
	s.step(engine.Tick{Now: now})
}

func (s *twoNodes) pod(name, node, scheduler, cpu string) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	p.Spec.SchedulerName, p.Spec.NodeName = scheduler, node
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}}
	s.step(engine.PodSet{Pod: s.intake.Pod(p)})
}

// staleTape records a decision for the larger of two nodes, which another scheduler fills before the pod is bound.
func staleTape(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stale.tape")
	c := config.Default()
	r, err := tape.Create(path, 1<<20, c, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := app.Plugins{}.EngineConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	cfg.UnschedulableTimeout = 300 * record.Second
	e := engine.New(cfg)
	s := &twoNodes{intake: convert.NewIntake(), engine: func(ev engine.Event) []engine.Effect {
		effects := e.Step(ev)
		r.Observe(ev, effects)
		return effects
	}}
	s.open(record.Second)
	s.pod("web", "", v1.DefaultSchedulerName, "1")
	s.step(engine.Cycle{})
	s.pod("other", s.bind.Node, "another", "28")
	s.step(engine.BindDone{Pod: s.bind.Pod, Node: s.bind.Node})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestProfileRegret: from a recording, as a table and as data.
func TestProfileRegret(t *testing.T) {
	name := staleTape(t)
	code, out, errs := command(t, "kumiki", "profile", "regret", name)
	for _, want := range []string{"Decisions:  1, of which 1 were compared, 0 came to nothing", "1 of 1 have some", "staleness", "shop/web", "large", "small"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("code %d, no %q in\n%s%s", code, want, out, errs)
		}
	}
	var r record.Regret
	if _, out, _ = command(t, "kumiki", "profile", "regret", name, "-o", "json"); json.Unmarshal([]byte(out), &r) != nil ||
		r.Judged != 1 || r.Sum == 0 || r.Worst[0].Best != "small" {
		t.Errorf("%s", out)
	}
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{name + " --every 0", 2, "--every must be at least 1"},
		{file(t, "no recording"), 1, "not a recording"},
		{name + "x", 1, "no such file"},
	} {
		code, _, errs := command(t, append([]string{"kumiki", "profile", "regret"}, strings.Fields(c.line)...)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: code %d, errors %q, want %d and %q", c.line, code, errs, c.code, c.want)
		}
	}
}
