package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	socketName      = "pretend-gpu.sock"
	pollInterval    = 200 * time.Millisecond
	registerTimeout = 3 * time.Second
)

// socketIdentity tells one kubelet.sock from the next: a restarted kubelet makes a new file.
type socketIdentity struct {
	inode uint64
	ctime syscall.Timespec
}

func identify(path string) (socketIdentity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return socketIdentity{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return socketIdentity{}, fmt.Errorf("%s: no inode on this platform", path)
	}
	return socketIdentity{inode: stat.Ino, ctime: stat.Ctim}, nil
}

// serve offers the GPUs to the kubelet of one device-plugin folder until ctx ends. A kubelet empties that folder
// when it starts, our socket included, so each new kubelet.sock gets a new server and a new registration.
func serve(ctx context.Context, dir, sysfs string) error {
	kubelet := filepath.Join(dir, "kubelet.sock")
	for ctx.Err() == nil {
		identity, err := identify(kubelet)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			pause(ctx)
			continue
		}
		if err := serveKubelet(ctx, dir, sysfs, kubelet, identity); err != nil {
			log.Printf("kubelet at %s: %v; trying again", kubelet, err)
			pause(ctx)
		}
	}
	return nil
}

// serveKubelet serves one life of a kubelet: it returns when kubelet.sock was made anew or ctx ended.
func serveKubelet(ctx context.Context, dir, sysfs, kubelet string, identity socketIdentity) error {
	socket := filepath.Join(dir, socketName)
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	answers := &plugin{sysfs: sysfs, done: make(chan struct{})}
	dp.RegisterDevicePluginServer(server, answers)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	defer server.Stop()
	defer close(answers.done)

	if err := register(ctx, kubelet); err != nil {
		return fmt.Errorf("registering %s: %w", resourceName, err)
	}
	log.Printf("registered %d x %s with %s", gpuCount, resourceName, kubelet)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-time.After(pollInterval):
		}
		if current, err := identify(kubelet); err != nil || current != identity {
			log.Printf("%s was made anew or is gone: registering again", kubelet)
			return nil
		}
	}
}

func register(ctx context.Context, kubelet string) error {
	connection, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	_, err = dp.NewRegistrationClient(connection).Register(ctx, &dp.RegisterRequest{
		Version:      dp.Version,
		Endpoint:     socketName,
		ResourceName: resourceName,
		Options:      &dp.DevicePluginOptions{GetPreferredAllocationAvailable: true},
	})
	return err
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pollInterval):
	}
}
