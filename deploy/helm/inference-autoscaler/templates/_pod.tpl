{{/*
The container of the program. Takes a dict:
  root       the chart's scope
  command    run, sidecar or controller
  grpc       whether it listens for gRPC: "true" or nothing
  keda       whether it listens for KEDA: "true" or nothing
  resources  as in a container
  readiness  the path that readiness asks
  prefix     of the names of its volumes, for a pod that is not ours; there it confines itself too
*/}}
{{- define "autoscaler.container" -}}
name: autoscaler
image: {{ include "autoscaler.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args: [{{ .command }}, -c, /etc/autoscaler/autoscaler.yaml, --log-level, {{ .root.Values.logLevel }}]
ports:
  {{- if ne .command "controller" }}
  - {name: http, containerPort: 8080}
  {{- end }}
  {{- if .grpc }}
  - {name: grpc, containerPort: 8081}
  {{- end }}
  - {name: admin, containerPort: 8082}
  {{- if .keda }}
  - {name: keda, containerPort: 8083}
  {{- end }}
{{- if or .root.Values.env .root.Values.admin.tokenSecret }}
env:
  {{- if .root.Values.admin.tokenSecret }}
  # For `autoscaler explain` and `top` in the pod.
  - {name: AUTOSCALER_ADMIN_TOKEN_FILE, value: /etc/autoscaler-admin/token}
  {{- end }}
  {{- with .root.Values.env }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}
{{- with .root.Values.envFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
startupProbe:
  httpGet: {path: /healthz, port: admin}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: admin}
  periodSeconds: {{ .root.Values.probes.periodSeconds }}
  timeoutSeconds: 5
  failureThreshold: {{ .root.Values.probes.livenessFailures }}
readinessProbe:
  httpGet: {path: {{ .readiness }}, port: admin}
  periodSeconds: {{ .root.Values.probes.periodSeconds }}
  timeoutSeconds: 5
  failureThreshold: 2
securityContext:
  {{- if .prefix }}
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
  {{- end }}
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
{{- with .resources }}
resources: {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - {name: {{ .prefix }}config, mountPath: /etc/autoscaler, readOnly: true}
  - {name: {{ .prefix }}state, mountPath: /var/lib/autoscaler}
  - {name: {{ .prefix }}tmp, mountPath: /tmp}
  {{- if .root.Values.admin.tokenSecret }}
  - {name: {{ .prefix }}admin, mountPath: /etc/autoscaler-admin, readOnly: true}
  {{- end }}
  {{- with .root.Values.extraVolumeMounts }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end -}}

{{/*
The template of the pods of a workload of ours. Takes what the container takes, and:
  component  in the labels; nothing where the program is alone
  config     the configuration itself, whose change starts new pods
  configMap  the name of the ConfigMap that holds it
  token      whether the program asks the cluster anything
  grace      terminationGracePeriodSeconds
  state      the volume for what it writes; nothing where the workload makes it
*/}}
{{- define "autoscaler.podTemplate" -}}
{{- $values := .root.Values -}}
{{- $labels := include "autoscaler.selectorOf" . -}}
metadata:
  labels:
    {{- $labels | nindent 4 }}
    {{- with $values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    checksum/config: {{ .config | sha256sum }}
    {{- with $values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  {{- if ne (default "" .component) "proxy" }}
  serviceAccountName: {{ include "autoscaler.serviceAccount" .root }}
  {{- end }}
  automountServiceAccountToken: {{ not (empty .token) }}
  {{- with $values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .grace }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - {{- include "autoscaler.container" . | nindent 6 }}
  volumes:
    - name: config
      configMap: {name: {{ .configMap }}}
    {{- with .state }}
    - {{- toYaml . | nindent 6 }}
    {{- end }}
    - name: tmp
      emptyDir: {sizeLimit: 64Mi}
    {{- with $values.admin.tokenSecret }}
    - name: admin
      secret: {secretName: {{ . }}, items: [{key: token, path: token}]}
    {{- end }}
    {{- with $values.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with $values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $values.topologySpreadConstraints }}
  topologySpreadConstraints: {{- toYaml $values.topologySpreadConstraints | nindent 4 }}
  {{- else if .component }}
  # One machine that dies shall not take all of them.
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- $labels | nindent 10 }}
  {{- end }}
{{- end -}}
