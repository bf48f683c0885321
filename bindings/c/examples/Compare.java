import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.jna.*;
import com.sun.jna.ptr.*;

/** How alike two texts are. Run: java -Djna.encoding=UTF-8 -cp jna.jar -Djna.library.path=PREFIX/lib Compare.java TEXT TEXT */
public class Compare {
    public interface Nearsift extends Library {
        Nearsift C = Native.load("nearsift", Nearsift.class);
        String nearsift_last_error();
        int nearsift_recipe_default(PointerByReference recipe);
        int nearsift_recipe_free(Pointer recipe);
        int nearsift_sketch_text(Pointer recipe, byte[] text, long length, Pointer sketch, Pointer features);
        int nearsift_sketch_score(Pointer a, Pointer b, DoubleByReference score);
    }
    static void check(int status) {
        if (status != 0) throw new IllegalStateException(Nearsift.C.nearsift_last_error());
    }
    public static void main(String[] texts) {
        PointerByReference recipe = new PointerByReference();
        check(Nearsift.C.nearsift_recipe_default(recipe));
        Memory[] sketches = {new Memory(64), new Memory(64)};
        for (int i = 0; i < 2; i++) {
            byte[] text = texts[i].getBytes(UTF_8);
            check(Nearsift.C.nearsift_sketch_text(recipe.getValue(), text, text.length, sketches[i], null));
        }
        DoubleByReference score = new DoubleByReference();
        check(Nearsift.C.nearsift_sketch_score(sketches[0], sketches[1], score));
        System.out.printf("%.4f%n", score.getValue());
        check(Nearsift.C.nearsift_recipe_free(recipe.getValue()));
    }
}
