// SPDX-License-Identifier: Apache-2.0

package question_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/record"
)

// wholeNode is a pod that requests 4 cores, on a node since second 100 unless that is empty.
func wholeNode(name, node string, limit int64, stated string) *v1.Pod {
	p := newPod(name, node)
	p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = apiresource.MustParse("4")
	if limit > 0 {
		p.Spec.ActiveDeadlineSeconds = &limit
	}
	if stated != "" {
		p.Annotations = map[string]string{convert.DurationAnnotation: stated}
	}
	if node != "" {
		p.Status.StartTime = &metav1.Time{Time: time.Unix(100, 0)}
	}
	return p
}

// TestStartOfAGang: four nodes are full, each with one pod. A gang of some pods of the same size may start when enough
// of the pods with known ends have gone; the pod without a known end is expected to stay.
func TestStartOfAGang(t *testing.T) {
	for _, c := range []struct {
		size  int
		now   int64
		start record.Time // in seconds
		basis string
	}{
		{1, 200, 400, "1 pods end until then: 1 have activeDeadlineSeconds"},
		{2, 200, 700, "2 pods end until then: 1 have activeDeadlineSeconds, 1 state it by annotation"},
		{3, 200, 1100, "3 pods end until then: 2 have activeDeadlineSeconds, 1 state it by annotation"},
		{4, 200, 0, "none: it has been tried too short a time"},
		{2, 800, 800, "2 pods end until then: 1 have activeDeadlineSeconds, 1 state it by annotation"},
	} {
		e, in := newEngine()
		in.DeclareGangs(convert.GangRules{Annotation: true})
		e.Step(engine.Tick{Now: record.Time(c.now) * record.Second})
		for i := range 4 {
			e.Step(engine.NodeSet{Node: in.Node(newNode(fmt.Sprint("n", i), "4"))})
		}
		e.Step(engine.Synced{})
		for _, p := range []*v1.Pod{
			wholeNode("unknown", "n0", 0, ""), wholeNode("limit", "n1", 300, ""),
			wholeNode("stated", "n2", 5000, "10m"), wholeNode("last", "n3", 1000, "not a duration"),
		} {
			e.Step(engine.PodSet{Pod: in.Pod(p)})
		}
		for i := range c.size {
			p := wholeNode(fmt.Sprint("g", i), "", 0, "")
			p.Annotations = map[string]string{"pod_group": "g", "pod_group_size": fmt.Sprint(c.size)}
			e.Step(engine.PodSet{Pod: in.Pod(p)})
		}
		e.Step(engine.Cycle{})
		r, known := question.New(e.View()).ExplainGang("default", "g")
		if !known || r.Fit == nil || r.Estimate != c.start*record.Second || r.Basis != c.basis {
			t.Errorf("gang of %d at %d s: known %v, start at %d s (%s), want %d (%s); %+v", c.size, c.now, known,
				r.Estimate/record.Second, r.Basis, c.start, c.basis, r.Fit)
		}
	}
}
