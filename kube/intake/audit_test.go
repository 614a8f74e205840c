// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

func metaOf(namespace, name, version string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: version}
}

// TestAnAuditFindsWhatAWatchDidNotTell compares what an inbox received with what the API server has, twice. It fails
// when a lost event is overlooked, and when lag, an old answer or a bound pod is taken for one.
func TestAnAuditFindsWhatAWatchDidNotTell(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, pods map[string]string // name -> version that the API server gives
		// meanwhile happens between the two looks.
		meanwhile func(nodes store[*v1.Node, *cluster.Node], pods store[*v1.Pod, *cluster.Pod], there map[string]string)
		want      string // the object that is found
	}{
		"nothing is lost":         {map[string]string{"n": "10"}, map[string]string{"p": "20", "bound": "21"}, nil, ""},
		"a change of a node":      {map[string]string{"n": "11"}, nil, nil, "n"},
		"a new node":              {map[string]string{"n": "10", "m": "12"}, nil, nil, "m"},
		"a change of a pod":       {nil, map[string]string{"p": "22"}, nil, "p"},
		"a new pod":               {nil, map[string]string{"q": "22"}, nil, "q"},
		"a pod known to be bound": {nil, map[string]string{"bound": "30"}, nil, ""},
		"an old answer":           {map[string]string{"n": "9"}, map[string]string{"p": "19"}, nil, ""},
		"not a number":            {map[string]string{"n": "x"}, nil, nil, ""},
		"a node that came a little later": {map[string]string{"n": "11"}, nil,
			func(nodes store[*v1.Node, *cluster.Node], _ store[*v1.Pod, *cluster.Pod], _ map[string]string) {
				_ = nodes.Update(&v1.Node{ObjectMeta: metaOf("", "n", "11")})
			}, ""},
		// The watch works; it is only always a little behind a node that changes without end.
		"a node that changes all the time": {map[string]string{"n": "11"}, nil,
			func(nodes store[*v1.Node, *cluster.Node], _ store[*v1.Pod, *cluster.Pod], there map[string]string) {
				_ = nodes.Update(&v1.Node{ObjectMeta: metaOf("", "n", "11")})
				there["n"] = "12"
			}, ""},
		"a pod that came and went": {nil, map[string]string{"q": "22"},
			func(_ store[*v1.Node, *cluster.Node], _ store[*v1.Pod, *cluster.Pod], there map[string]string) {
				delete(there, "q")
			}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) })
			nodes, pods := newNodeStore(in), newPodStore(in)
			bound := &v1.Pod{ObjectMeta: metaOf("ns", "bound", "21"), Spec: v1.PodSpec{NodeName: "n"}}
			_ = nodes.Replace([]any{&v1.Node{ObjectMeta: metaOf("", "n", "10")}}, "")
			_ = pods.Replace([]any{&v1.Pod{ObjectMeta: metaOf("ns", "p", "20")}, bound}, "")
			in.Take(nil, 100)
			there := map[string]string{} // node or pod -> version
			for _, of := range []map[string]string{c.nodes, c.pods} {
				for k, v := range of { // order: a copy
					there[k] = v
				}
			}
			looks := 0
			a := &Auditor{inbox: in, settle: time.Nanosecond, metrics: metrics.New(componentmetrics.NewKubeRegistry()),
				list: func(_ context.Context, resource string, _ metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
					if looks++; looks == 3 && c.meanwhile != nil {
						c.meanwhile(nodes, pods, there)
					}
					of, namespace := c.nodes, ""
					if resource == "pods" {
						of, namespace = c.pods, "ns"
					}
					list := &metav1.PartialObjectMetadataList{}
					for name := range of { // order: an audit does not depend on it
						if version, is := there[name]; is {
							list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metaOf(namespace, name, version)})
						}
					}
					return list, nil
				}}
			lost, err := a.look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && len(lost) > 0:
				t.Errorf("found %v", lost)
			case c.want != "" && (len(lost) != 1 || lost[0].name != c.want):
				t.Errorf("found %v, want %s", lost, c.want)
			}
		})
	}
}

// TestAnAuditListsAfresh fails when what is found has no consequence, and when only the first page of a list is
// looked at.
func TestAnAuditListsAfresh(t *testing.T) {
	in := NewInbox(func(string, any) {})
	_ = newNodeStore(in).Replace(nil, "")
	_ = newPodStore(in).Replace(nil, "")
	in.Take(nil, 1)
	ctx, stop := context.WithCancel(t.Context())
	relists, looked := 0, 0
	a := &Auditor{inbox: in, period: time.Nanosecond, settle: time.Nanosecond, metrics: metrics.New(componentmetrics.NewKubeRegistry()),
		relist: func() {
			if relists++; relists == 2 {
				stop()
			}
		},
		list: func(_ context.Context, resource string, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
			looked++
			if resource == "nodes" {
				return &metav1.PartialObjectMetadataList{}, nil
			}
			// The second page has the pod.
			if o.Continue == "" {
				return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{Continue: "more"}}, nil
			}
			return &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{ObjectMeta: metaOf("ns", "lost", "5")}}}, nil
		}}
	a.Run(ctx)
	if relists != 2 || looked != 2*2*3 {
		t.Errorf("listed afresh %d times after %d lists, want 2 after 12", relists, looked)
	}
}
