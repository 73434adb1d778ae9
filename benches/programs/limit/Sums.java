import java.util.ArrayList;
import java.util.Arrays;

/** 60 arrays of 8 MiB, sorted and summed, and half a million objects. */
public class Sums {
    public static void main(String[] arguments) {
        var arrays = new ArrayList<long[]>();
        var names = new ArrayList<String>();
        int state = 1;
        for (int k = 0; k < 60; k++) {
            var array = new long[1 << 20];
            for (int i = 0; i < array.length; i++) {
                state = state * 1664525 + 1013904223;
                array[i] = state;
            }
            arrays.add(array);
            for (int i = 0; i < 8000; i++) names.add("name " + k + " " + i);
        }
        long sum = 0;
        for (var array : arrays) {
            Arrays.sort(array);
            sum = sum * 31 + array[array.length / 2];
        }
        for (var name : names) sum = sum * 31 + name.hashCode();
        System.out.println(sum + " " + arrays.size() + " " + names.size());
    }
}
