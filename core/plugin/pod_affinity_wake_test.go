// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Which changes of pods wake a pod. Mutants: pod-affinity-hint-pending, pod-affinity-hint-any-term,
// pod-affinity-hint-any-delete, pod-affinity-hint-one-way, pod-affinity-hint-matched, pod-affinity-hint-broken.
func TestPodAffinityHintsOnPods(t *testing.T) {
	in := cluster.NewIntake()
	web, red := podsBy("zone", "app", "web"), &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	broken := podsWhere("zone", "app", "Like")
	bound := func(options ...podOption) *v1.Pod { return pod("other", append(options, onNode("n"))...) }
	plain := pod("p")
	for name, c := range map[string]struct {
		pod     *v1.Pod
		was, is *v1.Pod
		want    Hint
	}{
		"a pod it wants near comes":                   {pod("p", wantsNear(web)), nil, bound(wears("app", "web")), QueueHint},
		"another pod comes":                           {pod("p", wantsNear(web)), nil, bound(wears("app", "db")), SkipHint},
		"one for each of two terms":                   {pod("p", wantsNear(web, podsBy("zone", "tier", "front"))), nil, bound(wears("app", "web")), SkipHint},
		"one for both terms":                          {pod("p", wantsNear(web, podsBy("zone", "tier", "front"))), nil, bound(wears("app", "web", "tier", "front")), QueueHint},
		"it waits itself":                             {pod("p", wantsNear(web)), nil, pod("other", wears("app", "web")), SkipHint},
		"it is nominated":                             {pod("p", wantsNear(web)), nil, pod("other", wears("app", "web"), nominated("n")), QueueHint},
		"one of another namespace":                    {pod("p", wantsNear(web)), nil, bound(inNamespace("other"), wears("app", "web")), SkipHint},
		"one of a namespace named":                    {pod("p", wantsNear(ofSpaces(web, "other"))), nil, bound(inNamespace("other"), wears("app", "web")), QueueHint},
		"one of a namespace selected":                 {pod("p", wantsNear(ofSpacesWith(web, red))), nil, bound(inNamespace("other"), wears("app", "web")), SkipHint},
		"one of any namespace":                        {pod("p", wantsNear(ofSpacesWith(web, &metav1.LabelSelector{}))), nil, bound(inNamespace("other"), wears("app", "web")), QueueHint},
		"a pod it wants far comes":                    {pod("p", wantsFar(web)), nil, bound(wears("app", "web")), SkipHint},
		"a pod it likes near comes":                   {pod("p", likesNear(1, web)), nil, bound(wears("app", "web")), SkipHint},
		"a pod it wants near goes":                    {pod("p", wantsNear(web)), bound(wears("app", "web")), nil, SkipHint},
		"a pod it wants far goes":                     {pod("p", wantsFar(web)), bound(wears("app", "web")), nil, QueueHint},
		"one of two it wants far goes":                {pod("p", wantsFar(web, podsBy("zone", "app", "db"))), bound(wears("app", "web")), nil, SkipHint},
		"it waited itself":                            {pod("p", wantsFar(web)), pod("other", wears("app", "web")), nil, SkipHint},
		"a pod that wants it far goes":                {plain, bound(wantsFar(podsBy("zone"))), nil, QueueHint},
		"a pod that wants both terms far":             {plain, bound(wantsFar(podsBy("zone"), web)), nil, SkipHint},
		"a pod that wants others far":                 {plain, bound(wantsFar(web)), nil, SkipHint},
		"a pod with broken terms goes":                {plain, bound(wantsFar(broken)), nil, QueueHint},
		"a pod with broken affinity goes":             {plain, bound(wantsNear(broken)), nil, SkipHint},
		"a pod comes to match":                        {pod("p", wantsNear(web)), bound(), bound(wears("app", "web")), QueueHint},
		"a pod matched before":                        {pod("p", wantsNear(web)), bound(wears("app", "web")), bound(wears("app", "web", "x", "y")), SkipHint},
		"a pod matches no more":                       {pod("p", wantsNear(web)), bound(wears("app", "web")), bound(), SkipHint},
		"a pod is far no more":                        {pod("p", wantsFar(web)), bound(), bound(wears("app", "web")), SkipHint},
		"a pod need not be far":                       {pod("p", wantsFar(web)), bound(wears("app", "web")), bound(), QueueHint},
		"a pod of no interest is relabelled":          {pod("p", wantsFar(web), wantsNear(web)), bound(), bound(wears("x", "y")), SkipHint},
		"a pod that waits is relabelled":              {pod("p", wantsFar(web)), pod("other", wears("app", "web")), pod("other"), SkipHint},
		"its own labels":                              {plain, plain, pod("p", wears("x", "y")), QueueHint},
		"its own terms are broken":                    {pod("p", wantsFar(broken)), nil, bound(), QueueHint},
		"its own preferences are broken":              {pod("p", likesFar(1, broken)), nil, bound(), SkipHint},
		"its own terms are broken, the other waits":   {pod("p", wantsFar(broken)), nil, pod("other"), SkipHint},
		"no terms, a pod comes":                       {plain, nil, bound(wears("app", "web")), SkipHint},
		"no terms, a pod with anti-affinity is there": {plain, nil, bound(wantsFar(web)), SkipHint},
	} {
		ch := Change{Event: Event{Resource: AssignedPod, Action: Add}}
		if c.was != nil {
			ch.OldPod, ch.Event.Action = in.Pod(c.was), Delete
		}
		if c.is != nil {
			ch.NewPod = in.Pod(c.is)
		}
		if c.was != nil && c.is != nil {
			ch.Event.Action = UpdatePodLabel
		}
		if got, asked := wakes(interPod(), in.PendingPod(c.pod), ch); got != c.want || !asked {
			t.Errorf("%s: hint %v, asked %v; want %v", name, got, asked, c.want)
		}
	}
}

// Which changes of nodes wake a pod. Mutants: pod-affinity-hint-any-node, pod-affinity-hint-lost,
// pod-affinity-hint-gained.
func TestPodAffinityHintsOnNodes(t *testing.T) {
	in := cluster.NewIntake()
	near, far := pod("p", wantsNear(podsBy("zone", "app", "web"))), pod("p", wantsFar(podsBy("zone", "app", "web")))
	for name, c := range map[string]struct {
		pod     *v1.Pod
		was, is *v1.Node
		want    Hint
	}{
		"near, a node with the key":           {near, nil, node("n", label("zone", "a")), QueueHint},
		"near, a node without it":             {near, nil, node("n", label("host", "n")), SkipHint},
		"near, a node gets the key":           {near, node("n"), node("n", label("zone", "a")), QueueHint},
		"near, a node loses the key":          {near, node("n", label("zone", "a")), node("n"), SkipHint},
		"near, a node moves":                  {near, node("n", label("zone", "a")), node("n", label("zone", "b")), QueueHint},
		"near, another label":                 {near, node("n", label("zone", "a")), node("n", label("zone", "a", "x", "y")), SkipHint},
		"far, a node with the key":            {far, nil, node("n", label("zone", "a")), QueueHint},
		"far, a node without it":              {far, nil, node("n"), QueueHint},
		"far, a node gets the key":            {far, node("n"), node("n", label("zone", "a")), SkipHint},
		"far, a node loses the key":           {far, node("n", label("zone", "a")), node("n"), QueueHint},
		"far, a node moves":                   {far, node("n", label("zone", "a")), node("n", label("zone", "b")), QueueHint},
		"far, another label":                  {far, node("n", label("zone", "a")), node("n", label("zone", "a", "x", "y")), SkipHint},
		"no terms":                            {pod("p"), nil, node("n", label("zone", "a")), SkipHint},
		"preferences":                         {pod("p", likesNear(1, podsBy("zone"))), nil, node("n", label("zone", "a")), SkipHint},
		"two terms, a node with one key":      {pod("p", wantsNear(podsBy("zone"), podsBy("host"))), nil, node("n", label("host", "n")), QueueHint},
		"terms that cannot be read":           {pod("p", wantsNear(podsWhere("zone", "app", "Like"))), node("n"), node("n", label("x", "y")), QueueHint},
		"anti-affinity that cannot be read":   {pod("p", wantsFar(podsWhere("zone", "app", "Like"))), node("n"), node("n", label("x", "y")), QueueHint},
		"preferences that cannot be read too": {pod("p", likesFar(1, podsWhere("zone", "app", "Like"))), node("n"), node("n", label("x", "y")), SkipHint},
	} {
		ch := Change{Event: Event{Resource: NodeObject, Action: Add}, NewNode: in.Node(c.is)}
		if c.was != nil {
			ch.OldNode, ch.Event.Action = in.Node(c.was), UpdateNodeLabel
		}
		if got, asked := wakes(interPod(), in.PendingPod(c.pod), ch); got != c.want || !asked {
			t.Errorf("%s: hint %v, asked %v; want %v", name, got, asked, c.want)
		}
	}
}

// Other events do not wake: taints and allocatable of nodes, tolerations and scale-downs of pods, gates.
func TestPodAffinityRegistersForNoOther(t *testing.T) {
	in := cluster.NewIntake()
	p := in.PendingPod(pod("p", wantsFar(podsBy("zone"))))
	for _, e := range []Event{{Resource: NodeObject, Action: UpdateNodeTaint}, {Resource: NodeObject, Action: UpdateNodeAllocatable},
		{Resource: NodeObject, Action: Delete}, {Resource: AssignedPod, Action: UpdatePodScaleDown},
		{Resource: UnscheduledPod, Action: UpdatePodToleration}, {Resource: VolumeObject, Action: Add}} {
		if _, asked := wakes(interPod(), p, Change{Event: e}); asked {
			t.Errorf("%s wakes", e)
		}
	}
}

// No hint that is registered as Alike reads more than namespace and Spec.
func TestPodAffinityAlikeHints(t *testing.T) {
	checkAlikeHints(t, func(t *rapid.T, name string) *v1.Pod { return randomSocial(t, name, 60) }, interPod())
}
