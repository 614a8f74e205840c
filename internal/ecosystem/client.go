// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Client works on objects of any kind.
type Client struct {
	Kube    *kubernetes.Clientset
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	config  *rest.Config
}

// NewClient makes a client from a kubeconfig.
func NewClient(kubeconfig string) (*Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	c := &Client{config: cfg}
	if c.Kube, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		return nil, err
	}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Kube.Discovery()))
	return c, nil
}

// Resource returns the API of an object's kind, in the object's namespace (default, if it names none).
func (c *Client) Resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		// The kind may have been defined since discovery.
		c.mapper.Reset()
		return nil, err
	}
	resource := c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return resource, nil
	}
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return resource.Namespace(namespace), nil
}

// Apply creates an object or changes it, by server-side apply.
func (c *Client) Apply(ctx context.Context, o *unstructured.Unstructured) error {
	resource, err := c.Resource(o)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	force := true
	_, err = resource.Patch(ctx, o.GetName(), types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: "kumiki-ecosystem", Force: &force})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// pause is the time between two attempts.
const pause = 100 * time.Millisecond

// Until calls f until it returns nil, and returns its last error if ctx ends before.
func Until(ctx context.Context, f func(context.Context) error) error {
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}

// applyUntil applies an object of a kind that may be known to the API server a moment later.
func (c *Client) applyUntil(ctx context.Context, o *unstructured.Unstructured) error {
	return Until(ctx, func(ctx context.Context) error { return c.Apply(ctx, o) })
}

// established waits until the API server serves a resource definition.
func (c *Client) established(ctx context.Context, definition *unstructured.Unstructured) error {
	return Until(ctx, func(ctx context.Context) error {
		resource, err := c.Resource(definition)
		if err != nil {
			return err
		}
		o, err := resource.Get(ctx, definition.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, condition := range conditions {
			if f := condition.(map[string]any); f["type"] == "Established" && f["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("%s is not established: %w", definition.GetName(), err)
	})
}

// tokenSeconds is how long a service account's token is valid: longer than any test.
const tokenSeconds = 24 * 3600

// writeKubeconfig writes a kubeconfig of a service account.
func (c *Client) writeKubeconfig(ctx context.Context, namespace, account, file string) error {
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	reply, err := c.Kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("get a token of service account %s/%s: %w", namespace, account, err)
	}
	const name = "local"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: c.config.Host,
			CertificateAuthority: c.config.CAFile, CertificateAuthorityData: c.config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: reply.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: namespace}},
		CurrentContext: name,
	}, file)
}
