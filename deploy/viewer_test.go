// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"errors"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/internal/fakekubelet"
)

// answersWhoSeesOneNamespace: an account with the roles of viewer.yaml for one namespace, and nothing more, asks about
// that namespace, and gets no name of another one. A second account gets all answers. The scheduler's own account
// needs no further right: process.end reads its log. Then the same through a port that the API server forwards to a
// pod, whose node has a kubelet for that purpose alone.
func (s *stage) answersWhoSeesOneNamespace(p *process) {
	s.Helper()
	s.applyRolesOfViewers()
	for _, namespace := range []string{"team", "secret-space"} {
		space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if _, err := s.client.CoreV1().Namespaces().Create(s.Context(), space, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
	for _, name := range []string{"tenant", "watcher", "guest"} {
		who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := s.client.CoreV1().ServiceAccounts("default").Create(s.Context(), who, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
	s.bind("kube-system", "Role", "kumiki-viewer", "tenant", "watcher")
	s.bind("team", "ClusterRole", "kumiki-namespace-viewer", "tenant", "guest")
	s.bind("", "ClusterRole", "kumiki-viewer", "watcher")
	s.tooLarge("team", "mine")
	s.tooLarge("secret-space", "secret-pod")

	s.asks("tenant", nil, "pod team/mine: Pending", "why", "pod/mine", "-n", "team")
	s.asks("tenant", nil, `"only": "team"`, "queue", "-n", "team", "-o", "json")
	s.asks("tenant", nil, "would still fit no node", "why", "pod/mine", "-n", "team", "--if", "drain node/"+s.anyNode())
	s.asks("tenant", nil, `may not get pod "secret-pod" in namespace "secret-space"`, "why", "pod/secret-pod", "-n", "secret-space")
	s.asks("tenant", nil, "a condition is about another one", "why", "pod/mine", "-n", "team", "--if", "delete pod/secret-space/secret-pod")
	s.asks("tenant", nil, "may not see the queue of all namespaces", "queue", "-A")
	s.asks("tenant", nil, "shows all namespaces", "why", "node/"+s.anyNode())
	s.asks("guest", nil, "bind the Role kumiki-viewer", "queue", "-n", "team")
	s.asks("watcher", []string{"secret-pod"}, "secret-space", "queue", "-A")

	kubelet := s.kubeletOf(p)
	through := []string{"--scheduler-pod", "kube-system/kumiki-0"}
	s.asks("tenant", nil, "pod team/mine: Pending", append(through, "why", "pod/mine", "-n", "team")...)
	s.asks("guest", nil, "you may not create pods/portforward in namespace kube-system", append(through, "queue", "-n", "team")...)
	if kubelet.Requests() == 0 {
		s.Error("no port was forwarded")
	}
}

// asks runs a command as an account until it says what is wanted. Names of the other namespace must not be in what it
// says, unless they are expected or in the question.
func (s *stage) asks(account string, names []string, want string, words ...string) {
	s.Helper()
	verb := 0
	if words[0] == "--scheduler-pod" {
		verb = 2
	}
	file := s.kubeconfigOf("default", account, s.TempDir())
	line := append(append([]string{words[verb]}, words[:verb]...), append(words[verb+1:], "--kubeconfig="+file)...)
	var text string
	s.eventually(strings.Join(line, " "), func() error {
		out, err := s.kumiki(line...).CombinedOutput()
		text = string(out)
		if !strings.Contains(text, want) {
			return &saidOtherwise{text, want, err}
		}
		return nil
	})
	if len(names) == 0 && strings.Contains(text, "secret") && !strings.Contains(strings.Join(words, " "), "secret") {
		s.Errorf("%q by %s names another namespace:\n%s", line, account, text)
	}
}

// saidOtherwise is a command that did not say what was wanted.
type saidOtherwise struct {
	text, want string
	err        error
}

func (e *saidOtherwise) Error() string { return "want " + strconv.Quote(e.want) + " in:\n" + e.text }
func (e *saidOtherwise) Unwrap() error { return e.err }

func (s *stage) applyRolesOfViewers() {
	s.Helper()
	raw, err := os.ReadFile("viewer.yaml")
	if err != nil {
		s.Fatal(err)
	}
	for _, text := range strings.Split(string(raw), "\n---\n") {
		role := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), role); err != nil {
			s.Fatal(err)
		}
		s.apply(objects{role})
	}
}

// bind binds a role to accounts of namespace default: in a namespace, or everywhere.
func (s *stage) bind(namespace, kind, role string, accounts ...string) {
	s.Helper()
	meta := metav1.ObjectMeta{Name: "viewers", Namespace: namespace}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	var who []rbacv1.Subject
	for _, name := range accounts {
		who = append(who, rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: "default"})
	}
	var err error
	if namespace == "" {
		_, err = s.client.RbacV1().ClusterRoleBindings().Create(s.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: who}, metav1.CreateOptions{})
	} else {
		_, err = s.client.RbacV1().RoleBindings(namespace).Create(s.Context(),
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: who}, metav1.CreateOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
}

// tooLarge makes a pod that fits no node.
func (s *stage) tooLarge(namespace, name string) {
	s.Helper()
	much := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100000")}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{SchedulerName: "kumiki",
		Containers: []corev1.Container{{Name: "c", Image: "none", Resources: corev1.ResourceRequirements{Requests: much}}}}}
	s.eventually("making pod "+name, func() error {
		_, err := s.client.CoreV1().Pods(namespace).Create(s.Context(), pod, metav1.CreateOptions{})
		return err
	})
}

func (s *stage) anyNode() string {
	s.Helper()
	nodes, err := s.client.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || len(nodes.Items) == 0 {
		s.Fatalf("no node: %v", err)
	}
	return nodes.Items[0].Name
}

// kubeletOf adds a node with a kubelet on this machine, and a pod kube-system/kumiki-0 on it whose ports are those of
// the process.
func (s *stage) kubeletOf(p *process) *fakekubelet.Kubelet {
	s.Helper()
	at, err := url.Parse(p.url)
	if err != nil {
		s.Fatal(err)
	}
	kubelet := &fakekubelet.Kubelet{Address: func() string { return at.Host }}
	server := httptest.NewTLSServer(kubelet)
	s.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "with-kubelet"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if _, err := s.client.CoreV1().Nodes().Create(s.Context(), node, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.eventually("the address of the kubelet", func() error { // controllers write the node too
		now, err := s.client.CoreV1().Nodes().Get(s.Context(), node.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(now.Status.Conditions, isReady) {
			// The first status that the local cluster writes replaces the addresses.
			return errors.New("the local cluster has not initialized the node")
		}
		now.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
		now.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
		_, err = s.client.CoreV1().Nodes().UpdateStatus(s.Context(), now, metav1.UpdateOptions{})
		return err
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kumiki-0"}, Spec: corev1.PodSpec{NodeName: "with-kubelet",
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: "c", Image: "none", Args: []string{"--secure-port=" + at.Port()}}}}}
	if _, err := s.client.CoreV1().Pods("kube-system").Create(s.Context(), pod, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.eventually("pod kumiki-0 running", func() error {
		now, err := s.client.CoreV1().Pods("kube-system").Get(s.Context(), "kumiki-0", metav1.GetOptions{})
		if err != nil || now.Status.Phase == corev1.PodRunning {
			return err
		}
		now.Status.Phase = corev1.PodRunning
		_, err = s.client.CoreV1().Pods("kube-system").UpdateStatus(s.Context(), now, metav1.UpdateOptions{})
		return err
	})
	return kubelet
}

func isReady(c corev1.NodeCondition) bool {
	return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
}
