{{/*
What puts the sidecar into the pods of the model servers of a pool: a strategic merge patch for whatever makes them
with a pod template at spec.template. Takes (list . "chat").
*/}}
{{- define "autoscaler.sidecarPatch" -}}
{{- $root := first . -}}
{{- $pool := last . -}}
{{- $server := index $root.Values.sidecars.servers $pool -}}
{{- $drain := $root.Values.drain -}}
{{- $platform := (index $root.Values.pools $pool).platform -}}
{{- if eq $platform.kind "kubernetes" -}}
apiVersion: {{ default "apps/v1" $platform.api_version }}
kind: {{ default "Deployment" $platform.resource_kind }}
metadata: {name: {{ $platform.name }}}
{{ end -}}
spec:
  template:
    metadata:
      annotations:
        # Another configuration starts new pods, once this is applied again.
        inference-autoscaler/config: {{ include "autoscaler.sidecarConfig" . | sha256sum }}
    spec:
      # drain.graceSeconds + drain.maxSeconds + drain.marginSeconds, and the server's own end.
      terminationGracePeriodSeconds: {{ add $drain.graceSeconds $drain.maxSeconds $drain.marginSeconds (default 30 $server.stopSeconds) }}
      containers:
        - {{- include "autoscaler.container" (dict
                "root" $root
                "command" "sidecar"
                "grpc" (include "autoscaler.speaksGrpc" (dict $pool (index $root.Values.pools $pool)))
                "readiness" "/readyz"
                "resources" $root.Values.sidecars.resources
                "prefix" "autoscaler-"
              ) | nindent 10 }}
        # Both are told to end at the same moment, but the server is needed until the sidecar has finished what is in
        # flight: it is told once nobody listens at the sidecar's admin port any more.
        - name: {{ $server.container }}
          lifecycle:
            preStop:
              {{- with $server.preStop }}
              {{- toYaml . | nindent 14 }}
              {{- else }}
              exec:
                command:
                  - python3
                  - -c
                  - |
                    import socket, time
                    while True:
                        try:
                            socket.create_connection(("127.0.0.1", 8082)).close()
                        except ConnectionRefusedError:
                            break
                        time.sleep(0.5)
              {{- end }}
      volumes:
        - name: autoscaler-config
          configMap: {name: {{ include "autoscaler.nameOf" (list $root (printf "%s-sidecar" $pool)) }}}
        - name: autoscaler-state
          emptyDir: {sizeLimit: 64Mi}
        - name: autoscaler-tmp
          emptyDir: {sizeLimit: 64Mi}
        {{- with $root.Values.admin.tokenSecret }}
        - name: autoscaler-admin
          secret: {secretName: {{ . }}, items: [{key: token, path: token}]}
        {{- end }}
        {{- with $root.Values.extraVolumes }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}
