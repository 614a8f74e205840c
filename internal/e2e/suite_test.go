// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	componentmetrics "k8s.io/component-base/metrics"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

// A scenario has a small cluster of its own inside the one cluster of the suite: nodes that only its pods select, and
// a namespace. All scenarios run at the same time under one scheduler, so that the suite takes as long as its longest
// scenario.
type scenario struct {
	name string
	// shapes are the scenario's nodes: a name and the fields of a shape in YAML. Node i of shape s is called s-i in
	// wants, and SCENARIO-s-000i in the cluster; all have the label scenario=SCENARIO. Capacity is 4 cores and 8Gi
	// unless given.
	shapes [][2]string
	steps  []step
}

// step is one act and what must come of it. Steps follow each other.
type step struct {
	// apply are objects in short form: a YAML list, see stage.object. SCENARIO in the text is the scenario's name.
	apply string
	// remove names objects as kind/name.
	remove []string
	// do is what short forms cannot say.
	do func(ctx context.Context, s *stage) error
	// want: pod -> the nodes where it may be (a-0, or several with | between), * for any node, or, with ! before
	// it, a part of the message that says why it waits; several parts have & between.
	want map[string]string
	// check returns what is wrong with the nodes of all pods of the scenario, empty if nothing is.
	check func(on map[string]string) string
}

// patience is how long a step may take; it ends a scenario that hangs.
const patience = 60 * time.Second

// suite is what the scenarios share.
type suite struct {
	client  *kubernetes.Clientset
	dynamic dynamic.Interface
	// schedulers are those that play, one for each configuration.
	schedulers []*app.Scheduler

	mu      sync.Mutex
	pods    map[string]map[string]v1.Pod // namespace -> name -> pod, as last listed
	patches map[string]int               // path -> patches that schedulers sent
}

// stage runs one scenario.
type stage struct {
	*suite
	scenario string
}

// playAll runs all scenarios against one cluster, and a scheduler for each configuration.
func playAll(t *testing.T, configurations []string, scenarios []scenario) {
	t.Helper()
	playStaged(t, "fast", configurations, scenarios)
}

// playStaged is tell with a life of pods: see testcluster.Options.
func playStaged(t *testing.T, stages string, configurations []string, scenarios []scenario) {
	cluster := testcluster.Start(t, testcluster.Options{NodeSpec: nodeSpec(t, scenarios), NoHeartbeats: true, PodStages: stages,
		// A claim that waited for a volume is looked at again every 15 seconds otherwise.
		Args: []string{"--controllers-arg=--pvclaimbinder-sync-period=1s"}})
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	s := &suite{client: kubernetes.NewForConfigOrDie(cfg), dynamic: dynamic.NewForConfigOrDie(cfg), patches: map[string]int{}}
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer end()

	for _, text := range configurations {
		o := app.DefaultOptions()
		if o.Rest, err = kube.RestConfig(kube.ClientOptions{Kubeconfig: cluster.SchedulerKubeconfig}); err != nil {
			t.Fatal(err)
		}
		o.Rest.Wrap(s.countPatches)
		if o.Config, err = config.Parse([]byte(text)); err != nil {
			t.Fatal(err)
		}
		o.Serve.Secure = nil
		o.Metrics = metrics.New(componentmetrics.NewKubeRegistry())
		scheduler, err := app.NewScheduler(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		s.schedulers = append(s.schedulers, scheduler)
		running.Go(func() {
			if err := scheduler.Run(ctx); err != nil {
				t.Errorf("a scheduler ended: %v", err)
			}
		})
	}
	running.Go(func() { s.look(ctx) })

	// outcomes: by position in scenarios.
	outcomes := make([]error, len(scenarios))
	var players sync.WaitGroup
	for i := range scenarios {
		players.Go(func() { outcomes[i] = s.play(ctx, &scenarios[i]) })
	}
	players.Wait()
	for i := range scenarios {
		t.Run(scenarios[i].name, func(t *testing.T) {
			if outcomes[i] != nil {
				t.Error(outcomes[i])
			}
		})
	}
}

// countPatches notes what is patched. The API server does not tell: a patch that changes nothing makes no new version.
func (s *suite) countPatches(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPatch {
			s.mu.Lock()
			s.patches[r.URL.Path]++
			s.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// nodeSpec describes the nodes of all scenarios.
func nodeSpec(t *testing.T, scenarios []scenario) string {
	t.Helper()
	var shapes []any
	seen := map[string]bool{} // scenario -> it was played
	for _, st := range scenarios {
		if seen[st.name] {
			t.Fatalf("two scenarios are called %s", st.name)
		}
		seen[st.name] = true
		for _, named := range st.shapes {
			shape := map[string]any{}
			if err := yaml.UnmarshalStrict([]byte(named[1]), &shape); err != nil {
				t.Fatalf("scenario %s, shape %s: %v", st.name, named[0], err)
			}
			shape["name"] = st.name + "-" + named[0]
			setDefault(shape, "count", 1)
			setDefault(shape, "capacity", map[string]any{})
			setDefault(shape["capacity"].(map[string]any), "cpu", "4")
			setDefault(shape["capacity"].(map[string]any), "memory", "8Gi")
			setDefault(shape, "labels", map[string]any{})
			shape["labels"].(map[string]any)["scenario"] = st.name
			shapes = append(shapes, shape)
		}
	}
	text, err := yaml.Marshal(map[string]any{"shapes": shapes})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func setDefault(m map[string]any, key string, value any) {
	if _, there := m[key]; !there {
		m[key] = value
	}
}

// look lists all pods again and again; the scenarios read the result.
func (s *suite) look(ctx context.Context) {
	for ctx.Err() == nil {
		list, err := s.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err == nil {
			pods := map[string]map[string]v1.Pod{}
			for _, p := range list.Items {
				if pods[p.Namespace] == nil {
					pods[p.Namespace] = map[string]v1.Pod{}
				}
				pods[p.Namespace][p.Name] = p
			}
			s.mu.Lock()
			s.pods = pods
			s.mu.Unlock()
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *suite) play(ctx context.Context, st *scenario) error {
	on := &stage{s, st.name}
	space := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: st.name, Labels: map[string]string{"scenario": st.name}}}
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i, step := range st.steps {
		if err := on.act(ctx, step); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

func (s *stage) act(ctx context.Context, st step) error {
	if err := s.apply(ctx, st.apply); err != nil {
		return err
	}
	for _, named := range st.remove {
		kind, name, _ := strings.Cut(named, "/")
		api, err := s.api(kind)
		if err != nil {
			return err
		}
		now := int64(0)
		if err := api.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return fmt.Errorf("removing %s: %w", named, err)
		}
	}
	if st.do != nil {
		if err := st.do(ctx, s); err != nil {
			return err
		}
	}
	wrong := "nothing was looked at"
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		if wrong = s.compare(st); wrong == "" {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("%s", wrong)
}

// compare says how the pods differ from what is wanted.
func (s *stage) compare(st step) string {
	s.mu.Lock()
	pods := s.pods[s.scenario]
	s.mu.Unlock()
	on := map[string]string{} // pod -> node in short form
	for name, p := range pods {
		on[name] = s.short(p.Spec.NodeName)
	}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(st.want)) {
		p, there := pods[name]
		if !there {
			wrong = append(wrong, "pod "+name+" is not there")
			continue
		}
		if w := differs(st.want[name], on[name], waits(&p)); w != "" {
			wrong = append(wrong, "pod "+name+" "+w)
		}
	}
	if st.check != nil {
		if w := st.check(on); w != "" {
			wrong = append(wrong, w)
		}
	}
	return strings.Join(wrong, "; ")
}

func differs(want, node, message string) string {
	is := fmt.Sprintf("is on %q, waits because of %q, want %s", node, message, want)
	if part, pending := strings.CutPrefix(want, "!"); pending {
		for _, p := range strings.Split(part, "&") {
			if node != "" || !strings.Contains(message, p) {
				return is
			}
		}
		return ""
	}
	if node == "" || want != "*" && !slices.Contains(strings.Split(want, "|"), node) {
		return is
	}
	return ""
}

// short is a node's name in wants: a-0 for SCENARIO-a-0000.
func (s *stage) short(node string) string {
	shape, number, ok := strings.Cut(strings.TrimPrefix(node, s.scenario+"-"), "-")
	if !ok || number == "" {
		return node
	}
	return shape + "-" + strings.TrimLeft(number[:len(number)-1], "0") + number[len(number)-1:]
}

// waits is what the pod's status says about why it is not bound.
func waits(p *v1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// resources: kind -> where it is in the API.
var resources = map[string]struct {
	schema.GroupVersionResource
	cluster bool // without namespace
}{
	"Pod":                   {schema.GroupVersionResource{Version: "v1", Resource: "pods"}, false},
	"Node":                  {schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, true},
	"Namespace":             {schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, true},
	"Service":               {schema.GroupVersionResource{Version: "v1", Resource: "services"}, false},
	"ReplicationController": {schema.GroupVersionResource{Version: "v1", Resource: "replicationcontrollers"}, false},
	"PersistentVolumeClaim": {schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, false},
	"PersistentVolume":      {schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, true},
	"ReplicaSet":            {schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, false},
	"StatefulSet":           {schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, false},
	"PodDisruptionBudget":   {schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, false},
	"PriorityClass":         {schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}, true},
	"StorageClass":          {schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}, true},
	"CSIDriver":             {schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}, true},
	"CSIStorageCapacity":    {schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csistoragecapacities"}, false},
	"DeviceClass":           {schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "deviceclasses"}, true},
	"ResourceSlice":         {schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}, true},
	"ResourceClaim":         {schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}, false},
	"ResourceClaimTemplate": {schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaimtemplates"}, false},
}

func (s *stage) api(kind string) (dynamic.ResourceInterface, error) {
	r, known := resources[kind]
	switch {
	case !known:
		return nil, fmt.Errorf("kind %q is not known to the suite", kind)
	case r.cluster:
		return s.dynamic.Resource(r.GroupVersionResource), nil
	}
	return s.dynamic.Resource(r.GroupVersionResource).Namespace(s.scenario), nil
}

// apply creates the objects of a list, in order.
func (s *stage) apply(ctx context.Context, text string) error {
	var list []map[string]any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "SCENARIO", s.scenario)), &list); err != nil {
		return fmt.Errorf("reading the objects: %w", err)
	}
	for _, short := range list {
		kind, _ := short["kind"].(string)
		api, err := s.api(kind)
		if err != nil {
			return err
		}
		obj := s.object(kind, short)
		for {
			_, err = api.Create(ctx, obj, metav1.CreateOptions{})
			// The account of a new namespace comes a little later.
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "service account") && !strings.Contains(err.Error(), "serviceaccount") {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", kind, obj.GetName(), err)
		}
	}
	return nil
}

// object makes an object from its short form: name, labels and annotations are beside kind, and other fields are as
// usual. A pod selects the scenario's nodes, and has one container, with the given requests, cpu and image.
func (s *stage) object(kind string, short map[string]any) *unstructured.Unstructured {
	full := map[string]any{"apiVersion": resources[kind].GroupVersion().String()}
	meta := map[string]any{}
	for key, value := range short {
		switch key {
		case "name", "labels", "annotations", "finalizers":
			meta[key] = value
		case "requests", "cpu", "image":
		default:
			full[key] = value
		}
	}
	full["metadata"] = meta
	if kind == "Pod" {
		podForm(s.scenario, short, full)
	}
	return &unstructured.Unstructured{Object: full}
}

func podForm(scenario string, short, full map[string]any) {
	setDefault(full, "spec", map[string]any{})
	spec := full["spec"].(map[string]any)
	setDefault(spec, "nodeSelector", map[string]any{})
	spec["nodeSelector"].(map[string]any)["scenario"] = scenario
	setDefault(spec, "automountServiceAccountToken", false)
	setDefault(spec, "terminationGracePeriodSeconds", int64(0))
	setDefault(spec, "containers", []any{map[string]any{}})
	for i, c := range spec["containers"].([]any) {
		c := c.(map[string]any)
		setDefault(c, "name", fmt.Sprint("c", i))
		setDefault(c, "image", "registry.example/app:1")
		if image, given := short["image"]; given {
			c["image"] = image
		}
		requests := map[string]any{}
		if given, ok := short["requests"].(map[string]any); ok {
			maps.Copy(requests, given)
		}
		if cpu, given := short["cpu"]; given {
			requests["cpu"] = cpu
		}
		if len(requests) == 0 {
			continue
		}
		resources := map[string]any{"requests": requests}
		limits := map[string]any{}
		for name, q := range requests {
			if strings.Contains(name, "/") {
				limits[name] = q // an extended resource is asked for by its limit
			}
		}
		if len(limits) > 0 {
			resources["limits"] = limits
		}
		c["resources"] = resources
	}
}

// waitABit waits a tenth of a second and reports whether ctx lives.
func waitABit(ctx context.Context) bool {
	select {
	case <-time.After(100 * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}
