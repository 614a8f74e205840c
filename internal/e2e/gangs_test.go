// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	componentmetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/examples/gangs"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/gangapi"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

// declared is a cluster with every API that declares gangs, and a scheduler that reads all of them.
type declared struct {
	*testing.T
	client  *kubernetes.Clientset
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
	log     ktesting.Buffer

	mu sync.Mutex
	// gangOf is the gang of each pod as last received by the engine: namespace/name -> source/name.
	gangOf map[string]string
}

// TestDeclarationsOfGangsOnARealAPIServer: each example is placed, its members have the annotations of their binding,
// and its object has a status; unusable declarations are reported; and the rights of deploy/kustomize/gangs are
// enough. Catches a declaration that is read in tests only, annotations that the API server does not copy, and a
// status that it refuses.
func TestDeclarationsOfGangsOnARealAPIServer(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 8, NoHeartbeats: true, Gangs: true,
		PodStages: "none"}) // members that end would leave their gangs
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	d := &declared{T: t, client: kubernetes.NewForConfigOrDie(cfg), dynamic: dynamic.NewForConfigOrDie(cfg), gangOf: map[string]string{}}
	d.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d.client.Discovery()))
	d.apply(testcluster.GangDefinitions)
	d.rights()
	defer d.schedule(cluster)()

	examples, err := fs.Glob(gangs.Files, "*.yaml")
	if err != nil || len(examples) != 6 {
		t.Fatalf("examples: %v, %v", examples, err)
	}
	for _, name := range examples {
		text, err := gangs.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d.apply(bytes.ReplaceAll(text, []byte("scheduling.k8s.io/v1beta1"), []byte("scheduling.k8s.io/"+native.Version)))
	}
	for job, key := range map[string]string{
		"native": "podgroup/native", "annotated": "annotation/annotated", "coscheduled": "sigs/coscheduled", "batch": "volcano/batch", "together": "pfnet/together",
	} {
		d.eventually(job+" is placed", func() error { return d.isPlaced(job, key) })
	}
	d.shows(native, "native", "conditions", `"`+gangapi.ScheduledCondition(native.Version)+`"`, `"status":"True"`)
	d.shows(sigs, "coscheduled", `"phase":"Running"`, `"running":4`)
	d.shows(volcano, "batch", `"phase":"Running"`, `"running":4`, `"Scheduled"`)

	// Volcano's job controller makes pods only then.
	d.apply([]byte("{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: empty, namespace: gangs}, spec: {minMember: 2}}"))
	d.shows(volcano, "empty", `"phase":"Inqueue"`)
	d.elasticOne()
	d.shrunkOne()
	d.badOnes()
	for line := range strings.Lines(d.log.String()) {
		if strings.Contains(line, "forbidden") || strings.Contains(line, "refused") {
			t.Errorf("a right is missing: %s", line)
		}
	}
}

var (
	native  = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: release().GangVersion(), Resource: "podgroups"}
	sigs    = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	volcano = schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}
)

// release returns the release of the API servers of this run.
func release() testcluster.Release {
	r, err := testcluster.ParseRelease(os.Getenv(testcluster.ReleaseEnv))
	if err != nil {
		panic(err)
	}
	return r
}

// apply makes objects; those of a kind that was just defined a little later.
func (d *declared) apply(text []byte) {
	d.Helper()
	documents := yamlutil.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := documents.Decode(&o.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			d.Fatal(err)
		}
		if len(o.Object) == 0 {
			continue
		}
		d.eventually("making "+o.GetKind()+" "+o.GetName(), func() error {
			kind := o.GroupVersionKind()
			mapping, err := d.mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				meta.MaybeResetRESTMapper(d.mapper)
				return err
			}
			var api dynamic.ResourceInterface = d.dynamic.Resource(mapping.Resource)
			if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				if o.GetNamespace() == "" {
					o.SetNamespace(metav1.NamespaceDefault)
				}
				api = d.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace())
			}
			_, err = api.Create(d.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
	}
}

// rights gives the scheduler's user the roles that are deployed, besides that of kube-scheduler.
func (d *declared) rights() {
	d.Helper()
	files, err := filepath.Glob("../../deploy/kustomize/gangs/*/rbac.yaml")
	if err != nil || len(files) != 3 {
		d.Fatalf("roles: %v, %v", files, err)
	}
	for _, file := range files {
		if strings.Contains(file, "podgroup") {
			continue // the role of kube-scheduler has it where the gate is on
		}
		text, err := os.ReadFile(file)
		if err != nil {
			d.Fatal(err)
		}
		const account = "- kind: ServiceAccount\n  name: kumiki\n  namespace: kube-system\n"
		if !strings.Contains(string(text), account) {
			d.Fatalf("%s does not bind the account", file)
		}
		d.apply([]byte(strings.Replace(string(text), account, "- {kind: User, apiGroup: rbac.authorization.k8s.io, name: 'system:kube-scheduler'}\n", 1)))
	}
}

// schedule runs a scheduler that records the events of its engine; the returned function ends it.
func (d *declared) schedule(cluster *testcluster.Cluster) (end func()) {
	d.Helper()
	log := ktesting.NewLogger(d, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
	d.log = log.GetSink().(ktesting.Underlier).GetBuffer()
	o := app.DefaultOptions()
	var err error
	if o.Rest, err = kube.RestConfig(kube.ClientOptions{Kubeconfig: cluster.SchedulerKubeconfig}); err != nil {
		d.Fatal(err)
	}
	file := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{pluginConfig: [{name: Kumiki, args: {" + gangs.Settings + "}}]}]\n"
	if o.Config, err = config.Parse([]byte(file)); err != nil {
		d.Fatal(err)
	}
	o.Serve.Secure = nil
	o.Metrics = metrics.New(componentmetrics.NewKubeRegistry())
	o.Observers = append(o.Observers, func(ev engine.Event, _ []engine.Effect) {
		if set, is := ev.(engine.PodSet); is && set.Pod.Gang != nil {
			d.mu.Lock()
			d.gangOf[set.Pod.Key()] = set.Pod.Gang.Key.Object().Name
			d.mu.Unlock()
		}
	})
	_, end = runInside(klog.NewContext(d.Context(), log), d.T, o)
	return end
}

// isPlaced tells what is missing until the four pods of a job are bound by one decision, and the engine knows their
// gang.
func (d *declared) isPlaced(job, key string) error {
	list, err := d.client.CoreV1().Pods("gangs").List(d.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job})
	if err != nil {
		return err
	}
	decisions := map[string]bool{}
	for _, p := range list.Items {
		if p.Spec.NodeName == "" {
			return fmt.Errorf("pod %s waits: %s", p.Name, waits(&p))
		}
		_, name, _ := strings.Cut(key, "/")
		number, err := strconv.ParseUint(p.Annotations["kumiki.dev/gang-decision"], 10, 64)
		if err != nil || number == 0 || p.Annotations["kumiki.dev/gang"] != name || p.Annotations["kumiki.dev/gang-quorum"] != "4" {
			return fmt.Errorf("the binding of pod %s left %v", p.Name, p.Annotations)
		}
		decisions[p.Annotations["kumiki.dev/gang-decision"]] = true
		d.mu.Lock()
		got := d.gangOf["gangs/"+p.Name]
		d.mu.Unlock()
		if got != key {
			return fmt.Errorf("the engine received that pod %s is in %q, want %q", p.Name, got, key)
		}
	}
	if len(list.Items) != 4 || len(decisions) != 1 {
		return fmt.Errorf("%d pods, bound by decisions %v", len(list.Items), slices.Sorted(maps.Keys(decisions)))
	}
	return nil
}

// shows waits until the status of an object holds all these texts, as JSON.
func (d *declared) shows(api schema.GroupVersionResource, name string, texts ...string) {
	d.Helper()
	d.eventually("the status of "+name, func() error {
		o, err := d.dynamic.Resource(api).Namespace("gangs").Get(d.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		raw, err := (&unstructured.Unstructured{Object: map[string]any{"kind": "x", "apiVersion": "v1", "status": o.Object["status"]}}).MarshalJSON()
		if err != nil {
			return err
		}
		for _, text := range texts {
			if !strings.Contains(string(raw), text) {
				return fmt.Errorf("no %s in %s", text, raw)
			}
		}
		return nil
	})
}

// pod makes a pod of the namespace of gangs, with this metadata besides its name and this spec besides its container.
func (d *declared) pod(name, metadata, spec string) {
	d.Helper()
	d.apply([]byte("{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: gangs, " + metadata + "}, spec: {containers: [{name: c, image: none}]" + spec + "}}"))
}

// becomes waits until each of these pods has a node, or waits with this message: name -> text, empty for a node.
func (d *declared) becomes(what string, pods map[string]string) {
	d.Helper()
	d.eventually(what, func() error {
		for name, want := range pods {
			p, err := d.client.CoreV1().Pods("gangs").Get(d.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got := waits(p); want == "" && p.Spec.NodeName == "" || want != "" && (p.Spec.NodeName != "" || !strings.Contains(got, want)) {
				return fmt.Errorf("pod %s is on node %q, waits because of %q, want %q", name, p.Spec.NodeName, got, want)
			}
		}
		return nil
	})
}

// elasticOne needs two pods and would like to have three, for one of which there is no node. One that is lost is
// replaced.
func (d *declared) elasticOne() {
	d.Helper()
	const gang = "annotations: {pod_group: elastic, pod_group_size: '3', pod_group_min_size: '2'}"
	d.pod("elastic-0", gang, "")
	d.becomes("one pod is too few", map[string]string{"elastic-0": "gang gangs/elastic needs 2 pods, 1 are there"})
	d.pod("elastic-2", gang, ", nodeSelector: {no: node}")
	d.pod("elastic-1", gang, "")
	d.becomes("two start", map[string]string{"elastic-0": "", "elastic-1": "", "elastic-2": "gang gangs/elastic has the pods that it needs"})
	now := int64(0)
	if err := d.client.CoreV1().Pods("gangs").Delete(d.Context(), "elastic-1", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		d.Fatal(err)
	}
	d.pod("elastic-3", gang, "")
	d.becomes("one is replaced", map[string]string{"elastic-0": "", "elastic-3": ""})
}

// shrunkOne asks for more pods than have a node, and then for fewer.
func (d *declared) shrunkOne() {
	d.Helper()
	const gang = "labels: {scheduling.x-k8s.io/pod-group: shrunk}"
	d.apply([]byte("{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: shrunk, namespace: gangs}, spec: {minMember: 2}}"))
	d.pod("shrunk-0", gang, "")
	d.pod("shrunk-1", gang, ", nodeSelector: {no: node}")
	d.becomes("both wait", map[string]string{"shrunk-0": "gang gangs/shrunk cannot fit even on an empty cluster", "shrunk-1": "gang gangs/shrunk cannot"})
	if _, err := d.dynamic.Resource(sigs).Namespace("gangs").Patch(d.Context(), "shrunk", types.MergePatchType, []byte(`{"spec":{"minMember":1}}`), metav1.PatchOptions{}); err != nil {
		d.Fatal(err)
	}
	d.becomes("one starts", map[string]string{"shrunk-0": "", "shrunk-1": "gang gangs/shrunk has the pods that it needs"})
}

// badOnes plays unusable declarations: the pods wait, with the reason.
func (d *declared) badOnes() {
	d.Helper()
	d.apply([]byte("{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: none, namespace: gangs}, spec: {minMember: 0}}"))
	why := map[string]string{
		"two":     `two declarations disagree: its gang is "x" by sigs and "y" by annotation`,
		"zero":    "annotation pod_group_size must be above 0, it is 0",
		"words":   `annotation pod_group_size is no number of pods: "some"`,
		"nowhere": "waiting for pod group gangs/nowhere",
		"none":    "spec.minMember must be above 0, it is 0",
	}
	for name, pod := range map[string]string{
		"two":     "labels: {scheduling.x-k8s.io/pod-group: x}, annotations: {pod_group: 'y'}",
		"zero":    "annotations: {pod_group: z, pod_group_size: '0'}",
		"words":   "annotations: {pod_group: w, pod_group_size: some}",
		"nowhere": "annotations: {scheduling.k8s.io/group-name: nowhere}",
		"none":    "labels: {scheduling.x-k8s.io/pod-group: none}",
	} {
		d.apply([]byte("{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: gangs, " + pod + "}, spec: {containers: [{name: c, image: none}]}}"))
	}
	for name, want := range why {
		d.eventually("pod "+name+" has the reason why it waits", func() error {
			p, err := d.client.CoreV1().Pods("gangs").Get(d.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got := waits(p); p.Spec.NodeName != "" || !strings.Contains(got, want) {
				return fmt.Errorf("on node %q, waits because of %q, want %q", p.Spec.NodeName, got, want)
			}
			return nil
		})
	}
	// An invalid gang blocks no other pod.
	plain := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "none"}}}}
	if _, err := d.client.CoreV1().Pods("gangs").Create(d.Context(), plain, metav1.CreateOptions{}); err != nil {
		d.Fatal(err)
	}
	d.eventually("a pod by itself is placed", func() error {
		p, err := d.client.CoreV1().Pods("gangs").Get(d.Context(), "plain", metav1.GetOptions{})
		if err == nil && p.Spec.NodeName == "" {
			err = errors.New(waits(p))
		}
		return err
	})
}

func (d *declared) eventually(what string, try func() error) {
	d.Helper()
	var err error
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	d.Fatalf("waited for: %s: %v", what, err)
}
