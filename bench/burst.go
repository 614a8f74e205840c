// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
)

const (
	namespace = "bench"
	// creators is how many pods are being created at once (upstream: scheduler_perf creates with 30).
	creators = 30
	// settledAfter is how long the number of events must stand still, where a scheduler does not write one for each pod.
	settledAfter = 3 * time.Second
)

// nodeSpec is scheduler_perf's node: 4 cores, 32Gi, 110 pods.
const nodeSpec = `shapes:
- name: node
  count: %d
  capacity: {cpu: "4", memory: 32Gi, pods: "110"}
`

// pod is scheduler_perf's pod: one container that asks for 100m and 500Mi.
func pod(name string) *corev1.Pod {
	noToken := false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &noToken,
			Containers: []corev1.Container{{
				Name: "pause", Image: "registry.k8s.io/pause:3.10.1",
				Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("500Mi"),
				}},
			}},
		},
	}
}

// burst is a cluster as this program sees it, and the pods that it creates there.
type burst struct {
	o       Options
	cluster *testcluster.Cluster
	clients *kube.Clients
	client  *kubernetes.Clientset // of creates and questions
	servers []int                 // processes of API server and etcd
	names   []string
}

func newBurst(o Options, c *testcluster.Cluster) (*burst, error) {
	cfg, err := kube.RestConfig(kube.ClientOptions{Kubeconfig: c.Kubeconfig, QPS: -1})
	if err != nil {
		return nil, err
	}
	clients, err := kube.NewClients(cfg)
	if err != nil {
		return nil, err
	}
	b := &burst{o: o, cluster: c, clients: clients, client: clients.Binds}
	for i := range o.Pods {
		b.names = append(b.names, fmt.Sprintf("pod-%06d", i))
	}
	return b, nil
}

// prepare makes the namespace and then ends all that is not API server and etcd, so that nothing else works while the
// scheduler is measured.
func (b *burst) prepare(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := b.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	for {
		_, err := b.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			break
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("wait for the service account: %w", err)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return b.clear(false)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
