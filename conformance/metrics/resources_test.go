// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/metrics/resources"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/kube/serve"
	"github.com/kumiki-scheduler/kumiki/record"
)

// askers are pods that differ in how they say what they need: name -> spec.
var askers = map[string]string{
	"silent":   `{containers: [{name: c}]}`,
	"plain":    `{nodeName: a, priority: 7, containers: [{name: c, resources: {requests: {cpu: 1500m, memory: 1Gi}, limits: {cpu: "2", memory: 2Gi}}}]}`,
	"several":  `{nodeName: a, containers: [{name: c, resources: {requests: {cpu: 250m}}}, {name: d, resources: {limits: {memory: 100M}}}]}`,
	"init":     `{initContainers: [{name: i, resources: {requests: {cpu: "3"}, limits: {cpu: "4"}}}], containers: [{name: c, resources: {requests: {cpu: "1"}, limits: {cpu: "1"}}}]}`,
	"sidecar":  `{initContainers: [{name: i, restartPolicy: Always, resources: {requests: {cpu: "1"}, limits: {cpu: "1"}}}], containers: [{name: c, resources: {requests: {cpu: "1"}, limits: {cpu: "1"}}}]}`,
	"overhead": `{overhead: {cpu: 100m, memory: 5Mi}, containers: [{name: c, resources: {requests: {cpu: "1"}, limits: {memory: 1Gi}}}]}`,
	"podlevel": `{resources: {requests: {cpu: "5", memory: 3Gi}, limits: {cpu: "6"}}, containers: [{name: c, resources: {requests: {cpu: "1"}, limits: {cpu: "1"}}}]}`,
	"scalars":  `{containers: [{name: c, resources: {requests: {example.com/gpu: "2", hugepages-2Mi: 10Mi, ephemeral-storage: 1G, attachable-volumes-x: "3"}, limits: {example.com/gpu: "2", hugepages-2Mi: 10Mi, ephemeral-storage: 2G}}}]}`,
	"other":    `{schedulerName: another, containers: [{name: c, resources: {requests: {cpu: 1m}, limits: {cpu: 3m}}}]}`,
	"zero":     `{containers: [{name: c, resources: {requests: {cpu: "0"}, limits: {cpu: "0"}}}]}`,
}

func answer(h http.Handler) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics/resources", nil))
	return w.Body.String()
}

// TestWhatPodsAskForIsTheSame: the whole answer of /metrics/resources.
func TestWhatPodsAskForIsTheSame(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	var objects []runtime.Object
	for name, text := range askers { // order: both sides sort
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
		if err := yaml.UnmarshalStrict([]byte(text), &p.Spec); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if p.Spec.Priority == nil { // admission sets it
			p.Spec.Priority = new(int32)
		}
		if p.Spec.SchedulerName == "" {
			p.Spec.SchedulerName = v1.DefaultSchedulerName
		}
		if err := indexer.Add(p); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, p)
	}
	inbox := intake.NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) })
	informers := intake.NewInformers(fake.NewClientset(objects...), inbox)
	informers.Start(t.Context())
	defer informers.Stop()
	for name := range askers { // order: all are awaited
		for inbox.Pod(record.PodRef{Namespace: "ns", Name: name, UID: name}) == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
	ours, theirs := answer(serve.PodResources(inbox.Pods)), answer(resources.Handler(corelisters.NewPodLister(indexer)))
	if ours != theirs || len(theirs) < 1000 {
		t.Errorf("here:\n%s\nupstream:\n%s", ours, theirs)
	}
}
