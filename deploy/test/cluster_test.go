// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// limit ends a wait that hangs.
const limit = 60 * time.Second

// cluster is a local cluster without a scheduler, and the program that runs there.
type cluster struct {
	*testing.T
	*testcluster.Cluster
	rest   *rest.Config
	client *kubernetes.Clientset
	binary string
}

func startCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	c := &cluster{T: t, binary: filepath.Join(t.TempDir(), "kube-scheduler")}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", c.binary, "./cmd/kumiki")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building kumiki: %v\n%s", err, out)
	}
	c.Cluster = testcluster.Start(t, testcluster.Options{Nodes: nodes, NoHeartbeats: true})
	var err error
	if c.rest, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	c.rest.QPS = -1
	c.client = kubernetes.NewForConfigOrDie(c.rest)
	return c
}

// run starts what the pods of a Deployment would run: the command line, the configuration and the account of its pod, with the
// paths and the port of this machine. The caller ends it.
func (c *cluster) run(name string) *process {
	c.Helper()
	d, err := c.client.AppsV1().Deployments(namespace).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	pod := d.Spec.Template.Spec
	dir := c.TempDir()
	port := freePort(c.T)
	paths := []string{fmt.Sprint(pod.Containers[0].Ports[0].ContainerPort), port}
	for _, mount := range pod.Containers[0].VolumeMounts {
		here := filepath.Join(dir, mount.Name)
		if err := os.MkdirAll(here, 0o755); err != nil {
			c.Fatal(err)
		}
		paths = append(paths, mount.MountPath, here)
		c.fill(here, mount.Name, d)
	}
	var args []string
	for _, a := range pod.Containers[0].Args {
		args = append(args, strings.NewReplacer(paths...).Replace(a))
	}
	args = append(args, "--bind-address=127.0.0.1", "--kubeconfig="+c.kubeconfigOf(pod.ServiceAccountName))
	p := &process{T: c.T, ended: make(chan error, 1), url: "https://127.0.0.1:" + port}
	// The image has the program under both names; it acts by the name.
	p.cmd = &exec.Cmd{Path: c.binary, Args: append([]string{filepath.Base(pod.Containers[0].Command[0])}, args...)}
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		c.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	c.Cleanup(p.end)
	return p
}

// fill writes the ConfigMap behind a volume.
func (c *cluster) fill(dir, volume string, d *appsv1.Deployment) {
	c.Helper()
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Name != volume || v.ConfigMap == nil {
			continue
		}
		m, err := c.client.CoreV1().ConfigMaps(d.Namespace).Get(c.Context(), v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			c.Fatal(err)
		}
		for name, text := range m.Data { // order: each for itself
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				c.Fatal(err)
			}
		}
	}
}

// kubeconfigOf contains a token of a service account, as a pod finds it in a volume.
func (c *cluster) kubeconfigOf(account string) string {
	c.Helper()
	made, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(c.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: c.rest.Host, CertificateAuthorityData: c.rest.CAData, CertificateAuthority: c.rest.CAFile}
	k.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: made.Status.Token}
	k.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	k.CurrentContext = "x"
	path := filepath.Join(c.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		c.Fatal(err)
	}
	return path
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// process is the running program.
type process struct {
	*testing.T
	cmd   *exec.Cmd
	log   bytes.Buffer // complete once it has ended
	ended chan error
	url   string
}

// end stops the program, and reports rights that its account lacked.
func (p *process) end() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		if err != nil {
			p.Errorf("kumiki ended: %v", err)
		}
	case <-time.After(limit):
		p.Errorf("kumiki did not end")
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, "forbidden") || strings.Contains(line, "not allowed") {
			p.Errorf("the account lacks a right: %s", line)
		}
	}
	if p.Failed() {
		p.Logf("the log of kumiki:\n%s", p.log.String())
	}
}

// bound waits until all pods with a label have a node.
func (c *cluster) bound(selector string, count int) {
	c.Helper()
	c.eventually(fmt.Sprintf("%d pods with %s on nodes", count, selector), func() error {
		pods, err := c.client.CoreV1().Pods(namespace).List(c.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		placed := 0
		for _, p := range pods.Items {
			if p.Spec.NodeName != "" && p.Status.Phase == corev1.PodRunning {
				placed++
			}
		}
		if placed != count {
			return fmt.Errorf("%d of %d", placed, len(pods.Items))
		}
		return nil
	})
}

func (c *cluster) eventually(what string, try func() error) {
	c.Helper()
	err := errors.New("not tried")
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	c.Fatalf("waited for %s: %v", what, err)
}
