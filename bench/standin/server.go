// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Server is a running simulated API server.
type Server struct {
	url    string
	ca     []byte // PEM
	http   *http.Server
	served chan error

	tables map[string]*table // resource -> its objects
	nodes  []*corev1.Node

	mu      sync.Mutex
	pending map[string]*pending // namespace/name -> a pod that was added without a node
	used    map[string]*load    // node -> what pods use that were added with it
	counts  Counts
}

// kinds are the served resources. Only pods, nodes and namespaces have objects.
var kinds = map[string]schema.GroupVersionKind{ // resource -> kind
	"pods":                   {Version: "v1", Kind: "Pod"},
	"nodes":                  {Version: "v1", Kind: "Node"},
	"namespaces":             {Version: "v1", Kind: "Namespace"},
	"services":               {Version: "v1", Kind: "Service"},
	"configmaps":             {Version: "v1", Kind: "ConfigMap"},
	"replicationcontrollers": {Version: "v1", Kind: "ReplicationController"},
	"persistentvolumes":      {Version: "v1", Kind: "PersistentVolume"},
	"persistentvolumeclaims": {Version: "v1", Kind: "PersistentVolumeClaim"},
	"replicasets":            {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	"statefulsets":           {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	"poddisruptionbudgets":   {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	"storageclasses":         {Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"},
	"csinodes":               {Group: "storage.k8s.io", Version: "v1", Kind: "CSINode"},
	"csidrivers":             {Group: "storage.k8s.io", Version: "v1", Kind: "CSIDriver"},
	"csistoragecapacities":   {Group: "storage.k8s.io", Version: "v1", Kind: "CSIStorageCapacity"},
	"volumeattachments":      {Group: "storage.k8s.io", Version: "v1", Kind: "VolumeAttachment"},
	"resourceclaims":         {Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaim"},
	"resourceslices":         {Group: "resource.k8s.io", Version: "v1", Kind: "ResourceSlice"},
	"deviceclasses":          {Group: "resource.k8s.io", Version: "v1", Kind: "DeviceClass"},
	"devicetaintrules":       {Group: "resource.k8s.io", Version: "v1", Kind: "DeviceTaintRule"},
}

// streams is how many requests a connection has at once (upstream: --http2-max-streams-per-connection).
const streams = 100

// Start serves a cluster without nodes and pods on a free port of this machine.
func Start() (*Server, error) {
	s := &Server{served: make(chan error, 1), tables: map[string]*table{}, pending: map[string]*pending{},
		used: map[string]*load{}, counts: Counts{Events: map[string]int{}}}
	for resource, kind := range kinds { // order: into a map
		s.tables[resource] = newTable(kind)
	}
	cert, err := s.certificate()
	if err != nil {
		return nil, fmt.Errorf("certificate of the stand-in: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("stand-in: %w", err)
	}
	s.url = "https://" + l.Addr().String()
	s.http = &http.Server{
		Handler: s.routes(), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		ReadHeaderTimeout: 10 * time.Second,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: streams},
		ErrorLog:          log.New(io.Discard, "", 0), // connections of processes that are killed end badly
	}
	go func() { s.served <- s.http.ServeTLS(l, "", "") }()
	return s, nil
}

// certificate makes a self-signed key pair.
func (s *Server) certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// WriteKubeconfig writes a kubeconfig for the server into a directory and returns the file.
func (s *Server) WriteKubeconfig(dir string) (string, error) {
	const name = "standin"
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters[name] = &clientcmdapi.Cluster{Server: s.url, CertificateAuthorityData: s.ca}
	cfg.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: name}
	cfg.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	cfg.CurrentContext = name
	text, err := clientcmd.Write(*cfg)
	if err != nil {
		return "", fmt.Errorf("kubeconfig of the stand-in: %w", err)
	}
	file := path.Join(dir, name+".kubeconfig")
	return file, os.WriteFile(file, text, 0o600)
}

// Close ends all connections.
func (s *Server) Close() error {
	err := s.http.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
