// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// probeInterval is how often a role that starts is asked.
const probeInterval = 100 * time.Millisecond

// probe asks a cluster whether its parts work.
type probe struct {
	client kubernetes.Interface
}

func newProbe(kubeconfig string) (*probe, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read own kubeconfig: %w", err)
	}
	// Probing must not wait for its own rate limit, nor hang on a server that
	// was frozen.
	config.QPS = -1
	config.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &probe{client: client}, nil
}

// until repeats ask until it succeeds; the error tells the last refusal.
func until(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", context.Cause(ctx), err)
		case <-time.After(probeInterval):
		}
	}
}

func (p *probe) path(ctx context.Context, path string) error {
	return p.client.Discovery().RESTClient().Get().AbsPath(path).Do(ctx).Error()
}

// apiServer waits for /readyz, which includes the store and the bootstrap of
// roles and priority classes.
func (p *probe) apiServer(ctx context.Context) error {
	return until(ctx, func() error { return p.path(ctx, "/readyz") })
}

// etcd waits until the API server reads from the store.
func (p *probe) etcd(ctx context.Context) error {
	return until(ctx, func() error { return p.path(ctx, "/readyz/etcd") })
}

// controllers waits for what creating a pod needs: the default service account
// and the root certificate that is mounted into it.
func (p *probe) controllers(ctx context.Context) error {
	return until(ctx, func() error {
		_, err := p.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = p.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
}

// grantViewer lets the user of the viewer kubeconfig read everything except
// secrets: the stock role view leaves out nodes and other cluster-wide objects.
func (p *probe) grantViewer(ctx context.Context) error {
	const name = "kumiki:viewer"
	read := []string{"get", "list", "watch"}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{
			{Verbs: read, APIGroups: []string{""}, Resources: []string{
				"configmaps", "endpoints", "events", "limitranges", "namespaces", "nodes",
				"persistentvolumeclaims", "persistentvolumes", "pods", "pods/status",
				"replicationcontrollers", "resourcequotas", "serviceaccounts", "services",
			}},
			{Verbs: read, APIGroups: []string{
				"apps", "batch", "coordination.k8s.io", "events.k8s.io", "node.k8s.io", "policy",
				"resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
			}, Resources: []string{"*"}},
			{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}},
		},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: viewerUser}},
	}
	_, err := p.client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	_, err2 := p.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err2) {
		err2 = nil
	}
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("grant viewer: %w", err)
	}
	return nil
}
